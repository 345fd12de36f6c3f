"""Messages to addresses that people entered, after the specification of Standard Webhooks.

annotation.common.events stores them in the transaction of what they tell, annotation.outside.webhooks.manage
is what owners and managers do with the addresses.
"""

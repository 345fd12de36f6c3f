"""Messages to addresses that people entered, after the specification of Standard Webhooks.

annotation.services.events stores them in the transaction of what they tell, annotation.services.webhooks is
what owners and managers do with the addresses.
"""

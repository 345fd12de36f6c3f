"""A Label Studio ML backend that answers with what is stored here: nothing is predicted in a request."""

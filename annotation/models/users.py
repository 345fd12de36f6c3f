from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person who can log in. What somebody may do in a project is said by their Membership."""

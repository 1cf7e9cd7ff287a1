"""Models: what is known of each family, as data."""

from .profile import ModelProfile as ModelProfile
from .profiles import profile_of as profile_of
from .reading import read_profiles as read_profiles

"""Unplaced plans: an order of the ops and the absences of storages, without times and offsets."""

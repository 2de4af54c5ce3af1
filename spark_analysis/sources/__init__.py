"""From captures to units that tasks read, and captures as a Spark data source."""

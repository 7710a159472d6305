"""Plans of runs over presets, seeds and shares of the training set, with their table and charts."""

package document

// Stamp adds labels and annotations of the platform to a document that was
// converted.
func Stamp(object Object, labels, annotations map[string]string) error {
	metadata, ok := orEmpty(object["metadata"]).(Object)
	if !ok {
		return at("metadata", errShape)
	}
	object["metadata"] = metadata
	for field, values := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		all, ok := orEmpty(metadata[field]).(Object)
		if !ok {
			return at("metadata."+field, errShape)
		}
		for key, value := range values {
			all[key] = value
		}
		metadata[field] = all
	}
	return nil
}

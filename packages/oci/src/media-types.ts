/** Media types of the OCI image specification 1.1 and of ModelPack (CNCF model specification). */

/** Of an image manifest, which artifacts use as well. */
export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json'
/** Of a manifest in Docker's form, which Ollama's registry uses. */
export const DOCKER_MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json'
/** Of an image index. */
export const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json'
/** Of an ordinary image's configuration. */
export const IMAGE_CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json'
/** Of the configuration that goes with a manifest in Docker's form. */
export const DOCKER_CONFIG_TYPE = 'application/vnd.docker.container.image.v1+json'
/** Of an ordinary image's layer without compression. */
export const IMAGE_LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar'
/** `artifactType` of a ModelPack manifest. */
export const MODEL_ARTIFACT_TYPE = 'application/vnd.cncf.model.manifest.v1+json'
/** Of a ModelPack configuration. */
export const MODEL_CONFIG_TYPE = 'application/vnd.cncf.model.config.v1+json'

/** The use of a file: the part of a ModelPack layer's type before `.v1.raw`. */
export type LayerUse = 'weight' | 'weight.config' | 'doc' | 'code'

/** The media type of a layer that is one file, unpacked. */
export const rawLayerType = (use: LayerUse): string => `application/vnd.cncf.model.${use}.v1.raw`

/** The annotation in which ModelPack's consumers look for a file's path. */
export const FILEPATH_ANNOTATION = 'org.cncf.model.filepath'
/** The annotation in which oras and container runtimes look for it. */
export const TITLE_ANNOTATION = 'org.opencontainers.image.title'
/** The annotation for an image's tag within a layout. */
export const REF_NAME_ANNOTATION = 'org.opencontainers.image.ref.name'
/** Annotation: digest of the manifest that an artifact was packed from. */
export const PIN_ANNOTATION = 'svc.manifest'
/** Annotation: the reference that it was packed from, `ns/name:quant`. */
export const REF_ANNOTATION = 'svc.ref'
/** `true`: the model is withheld where it was packed, and so where it is imported (spec add.39). */
export const WITHHELD_ANNOTATION = 'svc.withheld'

export { type OciImageOptions, type OciLayoutOptions, ociImage, ociLayout } from './oci-model.ts'

export type { ImageLayout, OciChoice, RegistryImage } from '@svc/library'
export { type OciImageOptions, type OciLayoutOptions, ociImage, ociLayout } from './oci-model.ts'

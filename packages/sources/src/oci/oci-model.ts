import { resolve } from 'node:path'
import type { ImportChoice, ModelSource } from '@svc/library'
import { importSelectionOf, type ListableSource } from '@svc/library/parts'
import { listOci, type OciImage, type OciLayout, requireImage } from './source.ts'

/** What of an artifact in a registry, and how it is asked for. */
export interface OciImageOptions extends ImportChoice {
  /** Without TLS, as always with registries on this machine. */
  readonly plainHttp?: boolean | undefined
}

/** Which artifact of an image layout, and what of it. */
export interface OciLayoutOptions extends ImportChoice {
  /** By tag or digest; not needed if there is only one. */
  readonly manifest?: string | undefined
}

/**
 * A model in a registry, in the ModelPack format or that of Ollama, for `import` of a library. Credentials are those of the Docker
 * configuration. Nothing is asked before.
 * @param image `registry/name:tag` or `registry/name@sha256:<hex>`
 */
export const ociImage = (image: string, { plainHttp, ...choice }: OciImageOptions = {}): ModelSource =>
  ociSource(async () => {
    await requireImage(image)
    return { image, plainHttp }
  }, choice)

/** A model in an OCI image layout, a folder or a tar archive, for `import` of a library. Nothing is read before. */
export const ociLayout = (path: string, { manifest, ...choice }: OciLayoutOptions = {}): ModelSource =>
  ociSource(async () => ({ path: resolve(path), manifest }), choice)

function ociSource(placeOf: () => Promise<OciImage | OciLayout>, choice: ImportChoice): ModelSource {
  const source: ListableSource = {
    kind: 'oci',
    list: async (_, { signal }) => {
      const selection = importSelectionOf({ names: 'normalized', ...choice })
      return { source: await listOci(await placeOf(), signal), selection }
    }
  }
  return source
}

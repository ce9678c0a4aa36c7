import { resolve } from 'node:path'
import type { ImageLayout, OciChoice, RegistryImage } from '@svc/library'
import { importSelectionOf, type ListableSource } from '@svc/library/parts'
import { listOci, requireImage } from './source.ts'

/** What of an artifact in a registry, and how it is asked for. */
export interface OciImageOptions extends OciChoice {
  /** Without TLS, as always with registries on this machine. */
  readonly plainHttp?: boolean | undefined
}

/** Which artifact of an image layout, and what of it. */
export interface OciLayoutOptions extends OciChoice {
  /** By tag or digest; not needed if there is only one. */
  readonly manifest?: string | undefined
}

/**
 * A model in a registry, in the ModelPack format or that of Ollama, for `import` of a library. Credentials are those of the Docker
 * configuration. Nothing is asked before.
 * @param image `registry/name:tag` or `registry/name@sha256:<hex>`
 */
export function ociImage(image: string, { plainHttp, ...choice }: OciImageOptions = {}): RegistryImage {
  const source: RegistryImage = { kind: 'oci', image, plainHttp, choice: { names: 'normalized', ...choice } }
  const list: ListableSource['list'] = async (_, { signal }) => {
    await requireImage(image)
    return { source: await listOci({ image, plainHttp }, signal), selection: importSelectionOf(source.choice!) }
  }
  return Object.assign(source, { list })
}

/** A model in an OCI image layout, a folder or a tar archive, for `import` of a library. Nothing is read before. */
export function ociLayout(path: string, { manifest, ...choice }: OciLayoutOptions = {}): ImageLayout {
  const place = { path: resolve(path), manifest }
  const source: ImageLayout = { kind: 'oci-layout', ...place, choice: { names: 'normalized', ...choice } }
  const list: ListableSource['list'] = async (_, { signal }) => ({
    source: await listOci(place, signal),
    selection: importSelectionOf(source.choice!)
  })
  return Object.assign(source, { list })
}

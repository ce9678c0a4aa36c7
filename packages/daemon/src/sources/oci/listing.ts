import type { FetchOptions, OciDocument, OciFile, OciModel, RegistryOptions } from '@svc/oci'
import type { FetchContext } from '../../import/source.ts'

type Oci = typeof import('@svc/oci')

/** Where the bytes of one file go. */
type Sink = Parameters<Oci['fetchBlob']>[2]

/** An artifact that was found, and how its files are fetched. */
export interface Listed {
  readonly model: OciModel
  /** For the record of where an artifact came from. */
  readonly from: { readonly repo?: string; readonly revision: string }
  /** True where credentials were needed: not announced to the swarm (spec swarm.5). */
  isRestricted(): boolean
  fetch(file: OciFile, into: Sink, context: FetchContext): Promise<void>
  close(): Promise<void>
}

/** An artifact in a layout. @param wanted its tag or digest; the only one when absent. @throws OciError */
export async function listLayout(oci: Oci, path: string, wanted: string | undefined): Promise<Listed> {
  const layout = await oci.openLayout(path)
  const descriptor = oci.chooseManifest(layout.index, wanted)
  const model = oci.modelOf(oci.parseOciManifest(await layout.document(descriptor)))
  for (const { digest, sizeBytes } of model.files) await layout.place({ digest, size: sizeBytes })
  return {
    model,
    from: { revision: descriptor.digest },
    isRestricted: () => false,
    fetch: async ({ digest, sizeBytes }, into, { signal, onProgress }) => {
      const place = await layout.place({ digest, size: sizeBytes })
      await oci.readPlace(place, into, { signal, onProgress })
    },
    close: async () => undefined
  }
}

/** An artifact in a registry, its manifest pinned by digest from here on. @throws OciError; on abort the signal's reason */
export async function listRegistry(
  oci: Oci,
  image: string,
  options: RegistryOptions,
  signal: AbortSignal
): Promise<Listed> {
  const reference = oci.parseRegistryReference(image)
  const repository = new oci.Repository(reference, options)
  try {
    const document = await manifestOf(oci, repository, reference.digest ?? reference.tag, signal)
    const model = oci.modelOf(oci.parseOciManifest(document.bytes))
    await askForAccess(repository, model, signal)
    return {
      model,
      from: { repo: `${reference.registry}/${reference.repository}`, revision: document.digest },
      isRestricted: () => repository.usedCredentials,
      fetch: async ({ digest }, into, { signal, onProgress, onWaiting }) => {
        const patience: FetchOptions = {
          signal,
          onProgress: (bytesDone) => {
            onWaiting?.(undefined)
            onProgress(bytesDone)
          },
          ...(onWaiting !== undefined && { onWaiting })
        }
        await oci.fetchBlob(repository, digest, into, patience)
      },
      close: () => repository.close()
    }
  } catch (error) {
    await repository.close()
    throw error
  }
}

/** Some registries let everybody read manifests, and ask for a login with the first blob. What needed one has to be known before the import. */
async function askForAccess(
  repository: InstanceType<Oci['Repository']>,
  { files: [first] }: OciModel,
  signal: AbortSignal
): Promise<void> {
  if (first === undefined) return
  const { body } = await repository.call({ method: 'HEAD', target: `blobs/${first.digest}`, scope: 'pull', signal })
  await body.dump()
}

/** An index of one manifest stands for it: some tools wrap a single artifact so. */
async function manifestOf(
  oci: Oci,
  repository: InstanceType<Oci['Repository']>,
  tagOrDigest: string,
  signal: AbortSignal
): Promise<OciDocument> {
  const document = await repository.manifest(tagOrDigest, { signal })
  if (document.mediaType !== oci.INDEX_TYPE) return document
  const { digest } = oci.chooseManifest(oci.parseOciIndex(document.bytes), undefined)
  return repository.manifest(digest, { signal })
}

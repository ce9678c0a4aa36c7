import { basename } from 'node:path'
import type { FetchContext, Provenance } from '@svc/library/parts'
import {
  chooseManifest,
  fetchBlob,
  INDEX_TYPE,
  modelOf,
  type OciDocument,
  type OciFile,
  type OciModel,
  openLayout,
  parseRegistryReference,
  type ReadOciDocument,
  type RegistryOptions,
  Repository,
  readPlace
} from '@svc/oci'

/** The destination of one file's bytes. */
type Sink = Parameters<typeof fetchBlob>[2]

/** An artifact that was found, and how to fetch its files. */
export interface ListedArtifact {
  readonly model: OciModel
  /** For the record of an artifact's origin. */
  readonly from: { readonly repo?: string; readonly revision: string }
  /** Restricted if credentials were needed (spec swarm.5). */
  provenance(): Provenance
  fetch(file: OciFile, into: Sink, context: FetchContext): Promise<void>
  close(): Promise<void>
}

/**
 * An artifact in a layout. Its configuration is read although nothing here needs it: one that is damaged or incomplete is refused.
 * @param wanted its tag or digest; default: the only one. @throws OciError
 */
export async function listLayout(
  path: string,
  wanted: string | undefined,
  readDocument: ReadOciDocument
): Promise<ListedArtifact> {
  const layout = await openLayout(path, readDocument)
  const descriptor = chooseManifest(layout.index, wanted)
  const manifest = await readDocument('manifest', await layout.document(descriptor))
  const quant = await readDocument('quant', await layout.document(manifest.config))
  const model = modelOf(manifest, { repository: basename(path, '.tar'), quant })
  for (const { digest, sizeBytes } of model.files) await layout.place({ digest, size: sizeBytes })
  return {
    model,
    from: { revision: descriptor.digest },
    provenance: () => ({ access: 'own' }),
    fetch: async ({ digest, sizeBytes }, into, { signal, onProgress }) => {
      const place = await layout.place({ digest, size: sizeBytes })
      await readPlace(place, into, { signal, onProgress })
    },
    close: async () => undefined
  }
}

/** An artifact in a registry, with its manifest pinned by digest and its configuration verified. @throws OciError; on abort the signal's reason */
export async function listRegistry(
  image: string,
  options: RegistryOptions & { readonly readDocument: ReadOciDocument },
  signal: AbortSignal
): Promise<ListedArtifact> {
  const reference = parseRegistryReference(image)
  const { readDocument } = options
  const repository = new Repository(reference, options)
  try {
    const document = await manifestOf(repository, reference.digest ?? reference.tag, readDocument, signal)
    const manifest = await readDocument('manifest', document.bytes)
    const quant = await readDocument('quant', await repository.document(manifest.config, { signal }))
    const { repository: name, tag } = reference
    const model = modelOf(manifest, { repository: name, tag, quant })
    await askForAccess(repository, model, signal)
    return {
      model,
      from: { repo: `${reference.registry}/${reference.repository}`, revision: document.digest },
      provenance: () =>
        repository.usedCredentials ? { access: 'restricted', by: 'registry-login' } : { access: 'public' },
      fetch: async ({ digest }, into, { signal, onProgress, onWaiting }) => {
        const goesOn = (bytesDone: number): void => {
          onWaiting(undefined)
          onProgress(bytesDone)
        }
        await fetchBlob(repository, digest, into, { signal, onProgress: goesOn, onWaiting })
      },
      close: () => repository.close()
    }
  } catch (error) {
    await repository.close()
    throw error
  }
}

/** Some registries serve manifests to everyone, but require a login for blobs: the import must know that first. */
async function askForAccess(repository: Repository, { files: [first] }: OciModel, signal: AbortSignal): Promise<void> {
  if (first === undefined) return
  const answer = await repository.call({ method: 'HEAD', target: `blobs/${first.digest}`, scope: 'pull', signal })
  await answer.discard()
}

/** An index with a single manifest stands for that one: some tools wrap single artifacts. */
async function manifestOf(
  repository: Repository,
  tagOrDigest: string,
  readDocument: ReadOciDocument,
  signal: AbortSignal
): Promise<OciDocument> {
  const document = await repository.manifest(tagOrDigest, { signal })
  if (document.mediaType !== INDEX_TYPE) return document
  const { digest } = chooseManifest(await readDocument('index', document.bytes), undefined)
  return repository.manifest(digest, { signal })
}

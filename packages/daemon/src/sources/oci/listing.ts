import { basename } from 'node:path'
import type { FetchContext, ImportSource, Provenance } from '@svc/library/parts'
import type { OciDocument, OciFile, OciModel, ReadOciDocument, RegistryOptions } from '@svc/oci'
import { type Oci, ociFailure } from './errors.ts'

/** The destination of one file's bytes. */
type Sink = Parameters<Oci['fetchBlob']>[2]

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
  oci: Oci,
  path: string,
  wanted: string | undefined,
  readDocument: ReadOciDocument
): Promise<ListedArtifact> {
  const layout = await oci.openLayout(path, readDocument)
  const descriptor = oci.chooseManifest(layout.index, wanted)
  const manifest = await readDocument('manifest', await layout.document(descriptor))
  const quant = await readDocument('quant', await layout.document(manifest.config))
  const model = oci.modelOf(manifest, { repository: basename(path, '.tar'), quant })
  for (const { digest, sizeBytes } of model.files) await layout.place({ digest, size: sizeBytes })
  return {
    model,
    from: { revision: descriptor.digest },
    provenance: () => ({ access: 'own' }),
    fetch: async ({ digest, sizeBytes }, into, { signal, onProgress }) => {
      const place = await layout.place({ digest, size: sizeBytes })
      await oci.readPlace(place, into, { signal, onProgress })
    },
    close: async () => undefined
  }
}

/** An artifact in a registry, with its manifest pinned by digest and its configuration verified. @throws OciError; on abort the signal's reason */
export async function listRegistry(
  oci: Oci,
  image: string,
  options: Omit<RegistryOptions, 'readDocument'>,
  readDocument: ReadOciDocument,
  signal: AbortSignal
): Promise<ListedArtifact> {
  const reference = oci.parseRegistryReference(image)
  const repository = new oci.Repository(reference, { ...options, readDocument })
  try {
    const document = await manifestOf({ oci, repository, readDocument }, reference.digest ?? reference.tag, signal)
    const manifest = await readDocument('manifest', document.bytes)
    const quant = await readDocument('quant', await repository.document(manifest.config, { signal }))
    const { repository: name, tag } = reference
    const model = oci.modelOf(manifest, { repository: name, tag, quant })
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
        await oci.fetchBlob(repository, digest, into, { signal, onProgress: goesOn, onWaiting })
      },
      close: () => repository.close()
    }
  } catch (error) {
    await repository.close()
    throw error
  }
}

/** Some registries serve manifests to everyone, but require a login for blobs: the import must know that first. */
async function askForAccess(
  repository: InstanceType<Oci['Repository']>,
  { files: [first] }: OciModel,
  signal: AbortSignal
): Promise<void> {
  if (first === undefined) return
  const answer = await repository.call({ method: 'HEAD', target: `blobs/${first.digest}`, scope: 'pull', signal })
  await answer.discard()
}

/** An index with a single manifest stands for that one: some tools wrap single artifacts. */
async function manifestOf(
  {
    oci,
    repository,
    readDocument
  }: {
    readonly oci: Oci
    readonly repository: InstanceType<Oci['Repository']>
    readonly readDocument: ReadOciDocument
  },
  tagOrDigest: string,
  signal: AbortSignal
): Promise<OciDocument> {
  const document = await repository.manifest(tagOrDigest, { signal })
  if (document.mediaType !== oci.INDEX_TYPE) return document
  const { digest } = oci.chooseManifest(await readDocument('index', document.bytes), undefined)
  return repository.manifest(digest, { signal })
}

const CONCURRENCY = 4

/**
 * An OCI artifact as an import source. Each file's digest is that of its layer, so files that the store has are not
 * fetched. Unrecognized files (such as a README) are not fetched either.
 */
export function ociSource(oci: Oci, listed: ListedArtifact): ImportSource {
  const { model, from } = listed
  return {
    kind: 'oci',
    files: model.files.map((file) => ({
      name: file.name,
      sizeBytes: file.sizeBytes,
      digest: file.digest,
      fetch: async (into, context) => {
        try {
          await listed.fetch(file, into, context)
        } catch (error) {
          throw ociFailure(oci, error)
        }
      }
    })),
    annotations: model.annotations,
    fetchUnrecognized: false,
    concurrency: CONCURRENCY,
    // a registry may require a login for any of the files
    provenance: () => ({ ...listed.provenance(), ...(model.isWithheld && { marked: true }) }),
    origin: { kind: 'oci', ...from },
    warnings: [],
    close: () => listed.close()
  }
}

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { DiskBlobStore } from '@svc/cas'
import { digestFromBytes, type Sha256Digest, tryParseDigest } from '@svc/ref'
import type { ArtifactState, Artifacts } from '../library/artifacts.ts'
import type { Documents } from '../library/documents.ts'
import type { Views } from '../library/views.ts'

/** What the mirrors need of the daemon. */
export interface PublishedDeps {
  readonly store: DiskBlobStore
  readonly artifacts: Artifacts
  readonly views: Views
  readonly documents: Documents
}

/** A file as runtimes know it, and where its bytes are. */
export interface PublishedFile {
  /** Of the artifact that it is a file of. */
  readonly manifest: Sha256Digest
  readonly name: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest
  /** Whether the store has it as a blob; else it is a small file of the view's, unpacked from a tar, or `bytes`. */
  readonly isBlob: boolean
  /** In the managed view. */
  readonly path: string
  /** Of a licence text, which a manifest carries itself. */
  readonly bytes?: Uint8Array
  readonly kind: string
  readonly role: string | undefined
}

/** Unpacked files are configurations and tokenizers. */
const MAX_UNPACKED_BYTES = 256 << 20
const MAX_KNOWN = 1_000

/**
 * What mirrors may show: artifacts that are whole, neither private nor restricted, with their files under real names. They come
 * from the managed view, which is made when an artifact is asked for first.
 */
export class Published {
  readonly #deps: PublishedDeps
  readonly #files = new Map<Sha256Digest, Promise<readonly PublishedFile[]>>()
  #listed: { readonly changes: number; readonly states: readonly ArtifactState[] } | undefined

  constructor(deps: PublishedDeps) {
    this.#deps = deps
  }

  /** Every artifact that may be shown, the latest import first. What is incomplete shows when it is asked for. */
  async artifacts(): Promise<readonly ArtifactState[]> {
    const { artifacts } = this.#deps
    if (this.#listed?.changes === artifacts.changes) return this.#listed.states
    const { changes } = artifacts
    const states: ArtifactState[] = []
    for await (const state of artifacts.list(() => undefined)) if (isPublic(state)) states.push(state)
    states.sort((a, b) => ((a.importedAt ?? '') < (b.importedAt ?? '') ? 1 : -1))
    this.#listed = { changes, states }
    return states
  }

  /** Whether an artifact may be shown now. */
  async has(manifest: Sha256Digest): Promise<boolean> {
    const state = await this.#deps.artifacts.known(manifest)
    return state !== undefined && isPublic(state)
  }

  /** The files of an artifact in the order of its manifest. @throws what making a view throws: something is missing, or damaged */
  files(manifest: Sha256Digest): Promise<readonly PublishedFile[]> {
    const known = this.#files.get(manifest)
    if (known !== undefined) return known
    const found = this.#read(manifest)
    if (this.#files.size >= MAX_KNOWN) this.#files.delete(this.#files.keys().next().value!)
    this.#files.set(manifest, found)
    // a view that could not be made now may be made later
    found.catch(() => this.#files.delete(manifest))
    return found
  }

  /** Forgets what was read of an artifact: its view may be gone. */
  forget(manifest: Sha256Digest): void {
    this.#files.delete(manifest)
  }

  async #read(manifest: Sha256Digest): Promise<PublishedFile[]> {
    // only the digest matters: a pinned artifact has no name of its own
    const view = await this.#deps.views.make({ ref: `svc:///by/digest@${manifest}` })
    const files: PublishedFile[] = []
    for (const { name, path, size: sizeBytes, kind, role, digest } of view.files) {
      const known = digest === undefined ? undefined : tryParseDigest(digest)
      const unpacked = known ?? (await digestOf(path, sizeBytes))
      files.push({ manifest, name, path, sizeBytes, kind, role, digest: unpacked, isBlob: known !== undefined })
    }
    return [...files, ...licencesOf(manifest, (await this.#deps.documents.manifest(manifest))?.annotations ?? {})]
  }
}

const LICENCE_FILE = 'svc.license.file.'

function licencesOf(manifest: Sha256Digest, annotations: Readonly<Record<string, string>>): PublishedFile[] {
  const texts = Object.entries(annotations).filter(([key]) => key.startsWith(LICENCE_FILE))
  return texts.map(([key, text]) => {
    const bytes = Buffer.from(text)
    const digest = digestFromBytes(createHash('sha256').update(bytes).digest())
    const name = key.slice(LICENCE_FILE.length)
    return {
      manifest,
      name,
      bytes,
      digest,
      sizeBytes: bytes.length,
      path: '',
      kind: 'licence',
      role: undefined,
      isBlob: false
    }
  })
}

const isPublic = ({ private: isPrivate, restricted, incomplete }: ArtifactState): boolean =>
  !isPrivate && !restricted && incomplete !== true

async function digestOf(path: string, sizeBytes: number): Promise<Sha256Digest> {
  if (sizeBytes > MAX_UNPACKED_BYTES) throw new Error(`${path} is too large to be unpacked from a tar`)
  return digestFromBytes(
    createHash('sha256')
      .update(await readFile(path))
      .digest()
  )
}

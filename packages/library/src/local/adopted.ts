import type { DiskBlobStore } from '@svc/cas'
import { type Clock, timestampOf } from '@svc/internal-clock'
import { type Advise, LibraryError, NO_ADVICE, type Provenance } from '@svc/internal-state'
import { isDigest } from '@svc/ref'
import type { ToolFolders } from '@svc/view'
import type {
  ClaimedFile,
  ClaimedOrigin,
  ConfirmPublic,
  FileHere,
  ImportSource,
  PublicAnswer
} from '../import/source.ts'
import { downloadAmong, withheldWarning } from './downloads.ts'
import { sourceNotRegular } from './folder.ts'
import { HeldParents } from './held-parents.ts'
import { hashesOf, SeenBytes } from './seen-bytes.ts'
import { openLocal } from './source.ts'
import { checkPath, explained, fileIdentityOf, type WalkedFile } from './walk.ts'

/** Files under other names than their own, such as in the cache of a tool (spec add.27). */
interface AdoptedFiles {
  /** `ns/name`, for warnings. */
  readonly as: string
  readonly files: readonly {
    /** In the artifact, with `/` between folders. */
    readonly name: string
    /** Absolute. */
    readonly path: string
    /** `sha256:<hex>` that the bytes must have. */
    readonly sha256?: string
    /** Git's name of the blob. */
    readonly gitSha1?: string
  }[]
  /** Where they came from, as their cache says. */
  readonly hub?: ClaimedOrigin
  /** No tool downloaded them; of files in a tool's cache this is not believed. */
  readonly own?: boolean
}

type AdoptedFile = AdoptedFiles['files'][number]

const CONCURRENCY = 32
/**
 * Files up to this size, which may be in git or go into a tar, are hashed before they are used; larger ones while they
 * are ingested.
 */
const MAX_HASHED_FIRST_BYTES = 32 << 20
const GIT_SHA1 = /^[0-9a-f]{40}$/
/** A repository as annotations spell it. */
const REPO = /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/

interface AdoptedDeps {
  readonly clock: Clock
  readonly store: Pick<DiskBlobStore, 'stat'>
  /** Which of the owner's tools downloaded a file. */
  readonly tools: Pick<ToolFolders, 'toolOf'>
  /** Absent if there is no hub to ask. */
  readonly confirmPublic?: ConfirmPublic | undefined
  readonly advise?: Advise
}

/**
 * Files at arbitrary paths as an import source, under the given names (spec add.27). No component of a path may be a
 * link, now or when the file is opened. They are the owner's own only if the caller says so and no tool's cache has
 * them; others may have what a tool downloaded only if a source says so.
 * @throws LibraryError `E_INVALID` for a malformed field, an absent path, or a duplicate name;
 *   `E_SOURCE_NOT_REGULAR`
 */
export async function adoptedSource(body: AdoptedFiles, deps: AdoptedDeps): Promise<ImportSource> {
  const { files, hub, own = false } = body
  const { store, tools } = deps
  checkFiles(files)
  if (hub !== undefined && !isOrigin(hub))
    throw bad('the field "hub" must name a repository of the hub, and perhaps a commit')
  const commit = commitOf(body)
  const parents = new HeldParents()
  const seen = new SeenBytes(commit === undefined && hub !== undefined)
  let access: Pick<ImportSource, 'provenance' | 'warnings'> & { close(): void }
  const listed: FileHere[] = []
  try {
    for (const file of files) listed.push(await adoptedFile(file, parents, store, seen))
    const isOwn = own && hub === undefined && (await downloadAmong(files, tools)) === undefined
    access = isOwn ? OWN : askedAccess(body, () => seen.among(listed), deps)
  } catch (error) {
    await parents.close()
    throw error
  }
  return {
    kind: 'local',
    files: listed,
    annotations: commit === undefined ? {} : { 'svc.hf.repo': commit.repo, 'svc.hf.revision': commit.revision },
    fetchUnrecognized: false,
    concurrency: CONCURRENCY,
    provenance: access.provenance,
    origin: commit === undefined ? { kind: 'local', ...(hub && { repo: hub.repo }) } : { kind: 'hf', ...commit },
    warnings: access.warnings,
    close: async () => {
      access.close()
      await parents.close()
    }
  }
}

const OWN = { provenance: (): Provenance => ({ access: 'own' }), warnings: [], close: (): void => undefined }

/** A commit is recorded only if all bytes are compared with its hashes. */
const commitOf = ({ files, hub }: AdoptedFiles): { readonly repo: string; readonly revision: string } | undefined =>
  hub?.revision !== undefined && files.every(isHashed) ? { repo: hub.repo, revision: hub.revision } : undefined

/** Who may have files that a tool downloaded. The hub is asked while they are read; its answer is used after that. */
function askedAccess(
  body: AdoptedFiles,
  seen: () => readonly ClaimedFile[],
  { clock, confirmPublic, advise = NO_ADVICE }: Pick<AdoptedDeps, 'clock' | 'confirmPublic' | 'advise'>
) {
  const { as, files, hub } = body
  const commit = commitOf(body)
  const stop = new AbortController()
  const read = Promise.withResolvers<readonly ClaimedFile[]>()
  if (commit !== undefined) read.resolve(files.map(claimOf))
  const answer = hub && confirmPublic?.(commit ?? hub, read.promise, stop.signal)
  for (const each of [answer, read.promise]) each?.catch(() => undefined)
  const warnings: string[] = []
  return {
    warnings,
    provenance: async (): Promise<Provenance> => {
      read.resolve(seen())
      const said = hub === undefined ? 'unnamed' : ((await answer) ?? 'no-answer')
      if (said === 'public') return { access: 'public', confirmedPublicAt: timestampOf(clock) }
      warnings.push(withheldWarning(as, WHY[said], advise))
      return { access: 'unknown' }
    },
    close: (): void => {
      stop.abort()
      read.reject(new Error('the files were not read'))
    }
  }
}

/** Why it is not known that everybody may have files. */
const WHY: Readonly<Record<Exclude<PublicAnswer, 'public'> | 'unnamed', string>> = {
  unnamed: 'another tool downloaded it, and names no repository of the hub that could be asked',
  'not-public': 'the hub does not give it to everybody',
  'other-files': 'the hub does not list these files',
  'no-answer': 'the hub could not be asked whether everybody may have it; the next start of the daemon asks again'
}

const isOrigin = ({ repo, revision }: ClaimedOrigin): boolean =>
  REPO.test(repo) && repo.length <= 200 && (revision === undefined || GIT_SHA1.test(revision))

const isHashed = ({ sha256, gitSha1 }: AdoptedFile): boolean => (sha256 ?? gitSha1) !== undefined

/** Git's name is compared only where it is the only one. */
const claimOf = ({ name, sha256, gitSha1 }: AdoptedFile): ClaimedFile =>
  sha256 === undefined ? { name, gitSha1 } : { name, sha256 }

function checkFiles(files: readonly AdoptedFile[]): void {
  const names = new Set<string>()
  for (const file of files) {
    checkFile(file)
    if (names.has(file.name)) throw bad(`two files would be named ${JSON.stringify(file.name)}`)
    names.add(file.name)
  }
}

function checkFile({ name, path, sha256, gitSha1 }: AdoptedFile): void {
  checkPath(path)
  if (sha256 !== undefined && !isDigest(sha256)) throw bad(`the digest of ${JSON.stringify(name)} is malformed`)
  if (gitSha1 !== undefined && !GIT_SHA1.test(gitSha1))
    throw bad(`the git name of ${JSON.stringify(name)} is malformed`)
}

async function adoptedFile(
  file: AdoptedFile,
  parents: HeldParents,
  store: Pick<DiskBlobStore, 'stat'>,
  seen: SeenBytes
): Promise<FileHere> {
  const { name, path } = file
  const walked = await lookAt(file, parents)
  const sizeBytes = Number(walked.identity.size)
  // validated before: malformed digests were refused
  const sha256 = isDigest(file.sha256) ? file.sha256 : undefined
  const isHere = sha256 !== undefined && (await store.stat(sha256))?.sizeBytes === sizeBytes
  if (isHere) seen.saw(name, { sha256 })
  const isSmall = sizeBytes <= MAX_HASHED_FIRST_BYTES
  // the pipeline computes no git name
  const isHashedFirst = isSmall ? isHashed(file) || seen.isAsked : sha256 === undefined && file.gitSha1 !== undefined
  return {
    name,
    sizeBytes,
    // set the digest only for blobs that are present: the pipeline's own error for other bytes would not name the file
    ...(isHere && { digest: sha256 }),
    accept: ({ digest }) => {
      if (sha256 !== undefined && digest !== sha256) throw damaged(name, path)
      seen.saw(name, { sha256: digest })
    },
    async open() {
      const opened = await openLocal(walked, parents)
      if (!isHashedFirst) return opened
      try {
        const hashes = await hashesOf(sizeBytes, opened)
        if (!isAsPromised(file, hashes)) throw damaged(name, path)
        seen.saw(name, hashes)
        return opened
      } catch (error) {
        await opened.close()
        throw error
      }
    }
  }
}

async function lookAt({ name, path }: AdoptedFile, parents: HeldParents): Promise<WalkedFile> {
  try {
    return await parents.with(path, async (parent, last) => {
      const stat = await parent.lstat(last)
      if (!stat.isFile()) throw sourceNotRegular(path, stat)
      return { name, path, identity: fileIdentityOf(stat) }
    })
  } catch (error) {
    throw explained(error, path)
  }
}

const isAsPromised = (file: AdoptedFile, { sha256, gitSha1 }: ClaimedFile): boolean =>
  (file.sha256 ?? sha256) === sha256 && (file.gitSha1 ?? gitSha1) === gitSha1

const bad = (message: string): LibraryError => new LibraryError('E_INVALID', message)

const damaged = (name: string, path: string): LibraryError =>
  new LibraryError(
    'E_NOT_IMPORTABLE',
    `${JSON.stringify(name)} is damaged: the bytes at ${JSON.stringify(path)} are not those that its cache lists`,
    { candidates: [name] }
  )

import { createHash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import type { AdoptBody } from '@svc/client/protocol'
import { type Clock, timestampOf } from '@svc/internal-clock'
import { isDigest } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import type { FileHere, ImportSource, OpenedFile } from '../../import/source.ts'
import { localBytes } from '../../import/staged.ts'
import { type HubAnswer, type HubConfirmation, isClaimed } from '../hub/confirm.ts'
import { sourceNotRegular } from './folder.ts'
import { HeldParents } from './held-parents.ts'
import { openLocal } from './source.ts'
import { checkPath, explained, fileIdentityOf, type WalkedFile } from './walk.ts'

type AdoptedFile = AdoptBody['files'][number]

const CONCURRENCY = 32
/**
 * Files up to this size, which may be in git or go into a tar, are hashed before they are used; larger ones while they
 * are ingested.
 */
const MAX_HASHED_FIRST_BYTES = 32 << 20
const GIT_SHA1 = /^[0-9a-f]{40}$/
/** A repository as annotations spell it. */
const REPO = /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/

/**
 * Files at arbitrary paths as an import source, under the given names (spec add.27). No component of a path may be a
 * link, now or when the file is opened.
 * @throws DaemonError `E_BAD_REQUEST` for a malformed field, an absent path, or a duplicate name;
 *   `E_SOURCE_NOT_REGULAR`
 */
export async function adoptedSource(
  files: readonly AdoptedFile[],
  hub: AdoptBody['hub'],
  {
    clock,
    store,
    confirmation
  }: {
    readonly clock: Clock
    readonly store: Pick<DiskBlobStore, 'stat'>
    readonly confirmation?: HubConfirmation | undefined
  }
): Promise<ImportSource> {
  const names = new Set<string>()
  for (const file of files) {
    checkFile(file)
    if (names.has(file.name)) throw bad(`two files would be named ${JSON.stringify(file.name)}`)
    names.add(file.name)
  }
  if (hub !== undefined && !(REPO.test(hub.repo) && hub.repo.length <= 200 && GIT_SHA1.test(hub.revision)))
    throw bad('the field "hub" must name a repository of the hub and a commit')
  // an origin is recorded only if all bytes are compared with its hashes
  const known = hub !== undefined && files.every(({ sha256, gitSha1 }) => (sha256 ?? gitSha1) !== undefined)
  const parents = new HeldParents()
  const stop = new AbortController()
  try {
    const listed: FileHere[] = []
    for (const file of files) listed.push(await adoptedFile(file, parents, store))
    const warnings: string[] = []
    const word = hub === undefined ? undefined : wordOf(hub, known ? files : undefined, confirmation, stop.signal)
    // asked while files are read; the answer is used after that
    word?.catch(() => undefined)
    return {
      kind: 'local',
      files: listed,
      annotations: known ? { 'svc.hf.repo': hub.repo, 'svc.hf.revision': hub.revision } : {},
      fetchUnrecognised: false,
      concurrency: CONCURRENCY,
      provenance: async () => {
        if (word === undefined) return { access: 'own' }
        const said = await word
        if (said === 'public') return { access: 'public', confirmedPublicAt: timestampOf(clock) }
        warnings.push(`it is withheld from others: ${WHY[said]}`)
        return { access: 'unknown' }
      },
      origin: known ? { kind: 'hf', repo: hub.repo, revision: hub.revision } : { kind: 'local' },
      warnings,
      close: async () => {
        stop.abort()
        await parents.close()
      }
    }
  } catch (error) {
    stop.abort()
    await parents.close()
    throw error
  }
}

/** Why a repository of the hub is not known to be public. */
const WHY: Readonly<Record<Exclude<HubAnswer, 'public'>, string>> = {
  'not-public': 'the hub does not give it to everybody',
  'other-files': 'the hub does not list these files at this commit',
  'no-answer': 'the hub could not be asked whether everybody may have it; the next start of the daemon asks again'
}

/** The hub's statement about a cache's files. @param files undefined if not all of them have a hash */
async function wordOf(
  { repo, revision }: NonNullable<AdoptBody['hub']>,
  files: readonly AdoptedFile[] | undefined,
  confirmation: HubConfirmation | undefined,
  signal: AbortSignal
): Promise<HubAnswer> {
  if (files === undefined) return 'other-files'
  if (confirmation === undefined) return 'no-answer'
  const byName = new Map(files.map((file) => [file.name, file]))
  return confirmation.ask(
    repo,
    revision,
    async (listed, name) => isClaimed(listed, byName.get(name)!),
    [...byName.keys()],
    signal
  )
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
  store: Pick<DiskBlobStore, 'stat'>
): Promise<FileHere> {
  const { name, path } = file
  const walked = await lookAt(file, parents)
  const sizeBytes = Number(walked.identity.size)
  // validated before: malformed digests were refused
  const sha256 = isDigest(file.sha256) ? file.sha256 : undefined
  const isHere = sha256 !== undefined && (await store.stat(sha256))?.sizeBytes === sizeBytes
  return {
    name,
    sizeBytes,
    // set the digest only for blobs that are present: the pipeline's own error for other bytes would not name the file
    ...(isHere && { digest: sha256 }),
    accept: ({ digest }) => {
      if (sha256 !== undefined && digest !== sha256) throw damaged(name, path)
    },
    async open() {
      const opened = await openLocal(walked, parents)
      if (sizeBytes > MAX_HASHED_FIRST_BYTES || (sha256 ?? file.gitSha1) === undefined) return opened
      try {
        if (await isAsPromised(file, sizeBytes, opened)) return opened
        throw damaged(name, path)
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

async function isAsPromised(file: AdoptedFile, sizeBytes: number, opened: OpenedFile): Promise<boolean> {
  const sha256 = createHash('sha256')
  const gitSha1 = createHash('sha1').update(`blob ${sizeBytes}\0`)
  // the pipeline reads the file from its start, and closes it
  for await (const chunk of localBytes({ sizeBytes }, { ...opened, close: async () => undefined })) {
    sha256.update(chunk)
    gitSha1.update(chunk)
  }
  if (file.sha256 !== undefined && `sha256:${sha256.digest('hex')}` !== file.sha256) return false
  return file.gitSha1 === undefined || gitSha1.digest('hex') === file.gitSha1
}

const bad = (message: string): DaemonError => new DaemonError('E_BAD_REQUEST', message)

const damaged = (name: string, path: string): DaemonError =>
  new DaemonError(
    'E_NOT_IMPORTABLE',
    `${JSON.stringify(name)} is damaged: the bytes at ${JSON.stringify(path)} are not those that its cache lists`,
    { candidates: [name] }
  )

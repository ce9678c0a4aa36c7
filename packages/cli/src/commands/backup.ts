import { join, resolve, sep } from 'node:path'
import { ClientError } from '@svc/client'
import { within } from '@svc/internal-clock'
import type { BackedUp } from '@svc/publish'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { usage } from '../errors.ts'
import { withProgress } from '../follow.ts'
import { count, formatBytes } from '../format.ts'
import { withPublish } from '../libraries.ts'
import { runDaemonCommand } from '../service/daemon-run.ts'
import type { Session } from '../session.ts'

export interface BackupCommandOptions {
  readonly verify?: boolean
  readonly prune?: boolean
  readonly endpoint?: string
  readonly region?: string
}

/** A third of the time for which the daemon holds a snapshot. */
const HOLD_EVERY_MS = 40_000

/** `svc backup DEST`: a folder or `s3://bucket/prefix`. Run again, it adds what is new. */
export async function backup(session: Session, dest: string, options: BackupCommandOptions): Promise<void> {
  const { client, terminal, signal } = session
  await withPublish(session, async (lib) => {
    const place = lib.parsePlace(dest, terminal.cwd)
    const { root } = await client.status()
    if (place.kind === 'folder' && (place.path === root || place.path.startsWith(root + sep)))
      throw usage(`${place.path} lies inside the store; choose a folder outside`)
    const { endpoint, region } = options
    const target = await lib.openTarget(place, { endpoint, region, env: terminal.env, isPrivate: true })
    try {
      const done = await withSnapshot(session, (snapshotPath, missingBlobs, held) => {
        if (missingBlobs > 0)
          session.note(`${count(missingBlobs, 'file')} of incomplete models are missing, and not part of the backup`)
        return withProgress(session, { kind: 'backup', ref: target.name }, (onProgress) =>
          lib.backUp(target, {
            snapshotPath,
            blobPath: (digest) => blobPath(root, digest),
            verify: options.verify === true,
            prune: options.prune === true,
            signal: AbortSignal.any([signal, held]),
            onProgress
          })
        )
      })
      report(session, target.name, done)
    } finally {
      await target.close()
    }
  })
}

function report(session: Session, place: string, done: BackedUp): void {
  if (session.json) return session.document({ target: place, ...done })
  const { storeId, blobs, bytes, sentBlobs, sentBytes, prunedBlobs } = done
  session.print(
    `the store ${storeId} is backed up to ${place}: ${count(blobs, 'file')}, ${formatBytes(bytes)}; ${count(sentBlobs, 'file')} of them new, ${formatBytes(sentBytes)}`
  )
  if (prunedBlobs > 0) session.print(`removed ${count(prunedBlobs, 'file')} that only older snapshots needed`)
  session.note('it contains private and gated models: keep it as private as the store')
}

function blobPath(root: string, digest: Sha256Digest): string {
  const hex = digestHex(digest)
  return join(root, 'blobs', 'sha256', hex.slice(0, 2), hex.slice(2))
}

/** Holds a snapshot while `work` copies it. `held` is aborted, with the reason, when the daemon holds it no longer. */
async function withSnapshot<T>(
  { client, clock }: Session,
  work: (path: string, missingBlobs: number, held: AbortSignal) => Promise<T>
): Promise<T> {
  const { id, path, missingBlobs } = await client.makeSnapshot()
  const held = new AbortController()
  const timer = clock.every(HOLD_EVERY_MS, () => {
    client.holdSnapshot(id).catch((error: unknown) => {
      if (error instanceof ClientError && error.code === 'E_NOT_FOUND') held.abort(error)
    })
  })
  try {
    return await work(path, missingBlobs, held.signal)
  } finally {
    timer.cancel()
    await within(clock, HOLD_EVERY_MS, undefined, (signal) => client.releaseSnapshot(id, { signal })).catch(
      () => undefined
    )
  }
}

export interface RestoreCommandOptions {
  readonly root?: string
  readonly incomplete?: boolean
  readonly new?: boolean
  readonly endpoint?: string
  readonly region?: string
  readonly svcd?: string
}

/** `svc restore SRC` runs `svcd restore SRC`, which holds the lock of the new root. @throws CliError */
export async function restore(session: Session, src: string, options: RestoreCommandOptions): Promise<void> {
  const { root, incomplete, endpoint, region, svcd } = options
  const { cwd } = session.terminal
  const words = [
    'restore',
    /^s3:/i.test(src) ? src : resolve(cwd, src),
    ...(root === undefined ? [] : ['--root', resolve(cwd, root)]),
    ...(incomplete === true ? ['--incomplete'] : []),
    ...(options.new === true ? ['--new'] : [])
  ]
  const env = {
    ...(endpoint !== undefined && { AWS_ENDPOINT_URL_S3: endpoint }),
    ...(region !== undefined && { AWS_REGION: region })
  }
  await runDaemonCommand(session, words, { svcd, env, otherwise: 'the store was not restored' })
}

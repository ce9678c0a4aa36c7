import { execFile } from 'node:child_process'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'
import { daemonLogPath } from '../service/background.ts'
import { installedManager } from '../service/installed-manager.ts'
import type { Session } from '../session.ts'

const MAX_LINES = 200
const MAX_BYTES = 64 * 1024
/** A line of the journal may be long. */
const MAX_JOURNAL_BYTES = 8 << 20
const JOURNAL_MS = 10_000

/** The end of the daemon's log, and where it is; without lines where no program of the user may read it. */
export async function readLog({ client, terminal }: Session) {
  const { startedAt } = await client.status()
  const path = daemonLogPath(terminal.env)
  const own = path === undefined ? undefined : await tailOf(path, Date.parse(startedAt)).catch(() => undefined)
  if (own !== undefined) return { place: path, lines: own }
  if (installedManager(terminal.env)?.name !== 'systemd') return { lines: [] }
  const args = ['--user', '-u', 'svcd', '-n', `${MAX_LINES}`, '-o', 'cat', '--no-pager']
  const limits = { maxBuffer: MAX_JOURNAL_BYTES, timeout: JOURNAL_MS }
  const told = await promisify(execFile)('journalctl', args, { env: { ...terminal.env }, ...limits }).catch(
    () => undefined
  )
  return { place: 'journalctl --user -u svcd', lines: linesOf(told?.stdout ?? '') }
}

/** Undefined if the file is older than the daemon, which then writes elsewhere. */
async function tailOf(path: string, startedMs: number): Promise<readonly string[] | undefined> {
  const file = await open(path)
  try {
    const { size, mtimeMs } = await file.stat()
    if (mtimeMs < startedMs) return undefined
    const start = Math.max(0, size - MAX_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
    const lines = linesOf(buffer.subarray(0, bytesRead).toString('utf8'))
    // the first one may be cut
    return start === 0 ? lines : lines.slice(1)
  } finally {
    await file.close()
  }
}

const linesOf = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .slice(-MAX_LINES)

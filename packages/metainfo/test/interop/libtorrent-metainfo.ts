import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const PYTHON = '/usr/bin/python3'

const installed = spawnSync(PYTHON, ['-c', 'import libtorrent']).status === 0

/** True when tests against libtorrent are to be skipped, visibly; never with SVC_REQUIRE_INTEROP=1. */
export const skipLibtorrent: boolean = !installed && process.env.SVC_REQUIRE_INTEROP !== '1'

export type LibtorrentRequest =
  | { readonly create: string; readonly pieceLength: number }
  | { readonly load: string }
  | { readonly magnet: string }

export interface LibtorrentAnswer {
  readonly error?: string
  readonly infohash?: string | null
  readonly infoHex?: string
  readonly layers?: Readonly<Record<string, string>>
  readonly roots?: Readonly<Record<string, string | null>>
  readonly name?: string
  readonly files?: readonly (readonly [path: string, length: number, rootHex: string])[]
  readonly trackers?: readonly string[]
  readonly webseeds?: readonly string[]
}

/** Puts all requests to one libtorrent process; one answer each, in order (metainfo.py). */
export function askLibtorrent(requests: readonly LibtorrentRequest[]): LibtorrentAnswer[] {
  const script = fileURLToPath(new URL('metainfo.py', import.meta.url))
  const run = spawnSync(PYTHON, [script], {
    input: requests.map((request) => `${JSON.stringify(request)}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 2 ** 28
  })
  if (run.status !== 0) throw new Error(`libtorrent helper failed: ${run.stderr}`, { cause: run.error })
  return run.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as LibtorrentAnswer)
}

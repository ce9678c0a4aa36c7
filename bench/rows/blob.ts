import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { BareServer } from '../bounds/start-bare.ts'
import type { BenchDaemon } from '../harness/daemon.ts'
import { askAndStall, fetchAndDiscard } from '../harness/discard.ts'
import { bestNote, interleave, median, medianRatio } from '../harness/measure.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { hasNginx, Nginx } from '../harness/nginx.ts'
import { formatRate, formatSize } from '../harness/report.ts'
import type { Line, Row } from '../harness/row.ts'

interface OpenAnswer {
  readonly files: readonly { readonly digest: string; readonly path: string; readonly kind?: string }[]
}

export const blobRow: Row = {
  name: 'blob',
  summary:
    'a whole blob over the Unix socket against nginx, with and without sendfile; the same beside readers that stall',
  async run({ scratch, daemons, profile }) {
    if (!hasNginx()) throw new Error('nginx is not installed')
    const { blobBytes, shortRuns } = profile
    const folder = await scratch.folder()
    writeSafetensors(folder, 'model.safetensors', blobBytes)
    const place = await scratch.folder()
    mkdirSync(join(place, 'root'), { mode: 0o700 })
    const daemon = await daemons.start({ root: join(place, 'root') })
    const servers: { stop(): Promise<void> }[] = []
    try {
      const { digest, path } = await importWeights(daemon, folder)
      const started = async <T extends (typeof servers)[number]>(server: Promise<T>): Promise<T> => {
        servers.push(await server)
        return server
      }
      const withSendfile = await started(Nginx.start(await scratch.folder(), path, { sendfile: true }))
      const without = await started(Nginx.start(await scratch.folder(), path, { sendfile: false }))
      const reading = await started(BareServer.start(place, path, 'read'))
      const pushing = await started(BareServer.start(place, path, 'push'))
      const ours = (): Promise<number> => fetchAndDiscard(daemon.api.socketPath, `/v1/blob/${digest}`)
      await ours()
      const cpuOf = async (
        server: { cpuSeconds(): number },
        work: () => Promise<number>
      ): Promise<readonly [number, number]> => {
        const before = server.cpuSeconds()
        const seconds = await work()
        return [seconds, server.cpuSeconds() - before]
      }
      const rounds = await interleave<readonly [number, number], 'svc' | 'sendfile' | 'plain' | 'bare' | 'push'>(
        shortRuns,
        {
          sendfile: () => cpuOf(withSendfile, () => fetchAndDiscard(withSendfile.socketPath, '/')),
          svc: () => cpuOf(daemon, ours),
          plain: () => cpuOf(without, () => fetchAndDiscard(without.socketPath, '/')),
          bare: () => cpuOf(reading, () => fetchAndDiscard(reading.socketPath, '/')),
          push: () => cpuOf(pushing, () => fetchAndDiscard(pushing.socketPath, '/'))
        }
      )
      const time = (name: keyof typeof rounds): number[] => rounds[name].map(([seconds]) => seconds)
      const cpu = (name: keyof typeof rounds): string =>
        `${(median(rounds[name].map(([, seconds]) => seconds)) / (blobBytes / 1e9)).toFixed(2)}`
      const line = (name: 'sendfile' | 'plain', label: string, floor: number): Line => {
        const ratio = medianRatio(time(name), time('svc'))
        return {
          what: `blob of ${formatSize(blobBytes)}`,
          ours: formatRate(blobBytes / median(time('svc'))),
          peer: `nginx, ${label}: ${formatRate(blobBytes / median(time(name)))}`,
          ratio,
          target: `≥ ${floor.toFixed(1)}`,
          met: ratio >= floor,
          note: `${bestNote(time(name), time('svc'))}; server CPU s/GB ${cpu('svc')} against ${cpu(name)}`
        }
      }
      const bound = (name: 'bare' | 'push', what: string): Line => ({
        what,
        ours: formatRate(blobBytes / median(time(name))),
        peer: `nginx, sendfile off: ${formatRate(blobBytes / median(time('plain')))}`,
        ratio: medianRatio(time('plain'), time(name)),
        target: '',
        note: `${bestNote(time('plain'), time(name))}; ${medianRatio(time('sendfile'), time(name)).toFixed(2)} of sendfile on; server CPU s/GB ${cpu(name)}`
      })
      return [
        line('sendfile', 'sendfile on', 0.8),
        line('plain', 'sendfile off', 1.2),
        bound('bare', 'bound: a bare Node server that reads and writes'),
        bound('push', 'bound: one that writes without reading'),
        await besideStalled(daemon, digest, ours, shortRuns)
      ]
    } finally {
      await Promise.all(servers.map((server) => server.stop()))
      await daemon.stop()
    }
  }
}

async function importWeights(
  daemon: BenchDaemon,
  folder: string
): Promise<{ readonly digest: string; readonly path: string }> {
  await daemon.api.job('/v1/import/local', { paths: [folder], as: 'bench/model' })
  const open = (await daemon.api.get(`/v1/open?ref=${encodeURIComponent('svc:///bench/model:bf16')}`)) as OpenAnswer
  const weights = open.files.find((file) => file.kind === 'weights.safetensors')
  if (weights === undefined) throw new Error('the import has no weights file')
  return weights
}

const STALLED = 8

/** Times the same read alone, and alongside stalled clients that requested the blob but do not read. */
async function besideStalled(
  daemon: BenchDaemon,
  digest: string,
  read: () => Promise<number>,
  runs: number
): Promise<Line> {
  const rounds = await interleave(runs, {
    alone: read,
    beside: async () => {
      const stalled = await Promise.all(
        Array.from({ length: STALLED }, () => askAndStall(daemon.api.socketPath, `/v1/blob/${digest}`))
      )
      try {
        return await read()
      } finally {
        for (const socket of stalled) socket.destroy()
      }
    }
  })
  const ratio = medianRatio(rounds.alone, rounds.beside)
  return {
    what: `blob beside ${STALLED} stalled readers`,
    ours: `${(median(rounds.beside) * 1000).toFixed(0)} ms`,
    peer: `alone: ${(median(rounds.alone) * 1000).toFixed(0)} ms`,
    ratio,
    target: '≥ 0.9',
    met: ratio >= 0.9
  }
}

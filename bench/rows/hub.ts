import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from '../harness/certificate.ts'
import { type Timed, timeCommand, versionOf } from '../harness/command.ts'
import { end } from '../harness/daemon.ts'
import { atReference, hashCost } from '../harness/hash-cost.ts'
import { bestNote, interleave, median } from '../harness/measure.ts'
import { hasNginx, Nginx } from '../harness/nginx.ts'
import { formatRate, formatSeconds, formatSize } from '../harness/report.ts'
import type { Line, Row } from '../harness/row.ts'

const SERVER = new URL('../harness/hub-server.ts', import.meta.url).pathname
const BARE = new URL('../bounds/hub-process.ts', import.meta.url).pathname
const CLIENT = new URL('../harness/hub_download.py', import.meta.url).pathname
/** A Python that has `huggingface_hub`. */
const PYTHON = process.env.BENCH_PYTHON ?? 'python3'
/** The CDN's address is a second host, as on the real hub. */
const CDN_HOST = '127.0.0.2'

export const hubRow: Row = {
  name: 'hub',
  summary:
    'an import from a hub with a CDN that speaks TLS, against curl, sync and openssl, and against the hub’s own client',
  async run({ scratch, daemons, profile, say }) {
    if (!hasNginx()) throw new Error('nginx is the CDN of this row, and is not installed')
    const { hubBytes, runs } = profile
    const [files, place] = [await scratch.folder(), await scratch.folder()]
    const certificate = makeCertificate(place, CDN_HOST)
    const cdn = await Nginx.startTls(place, files, certificate)
    const hub = spawn(process.execPath, [...process.execArgv, SERVER, String(hubBytes), files, cdn.address], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc']
    })
    try {
      const [{ endpoint }] = (await once(hub, 'message')) as [{ endpoint: string }]
      const authority = { NODE_EXTRA_CA_CERTS: certificate.certificate, SSL_CERT_FILE: certificate.certificate }
      const into = async (command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Timed> => {
        const target = await scratch.folder()
        const time = await timeCommand(command, [...args, target], { ...process.env, ...authority, ...env })
        await scratch.drop(target)
        return time
      }
      const hasClient = versionOf(PYTHON, '-c', 'import huggingface_hub; print(huggingface_hub.__version__)')
      const costs: number[] = []
      const contestants = {
        tools: () => {
          costs.push(hashCost())
          return into(
            `curl -sSfL --cacert "$SSL_CERT_FILE" -o "$2/file" "$1"; sync "$2/file"; openssl dgst -sha256 "$2/file"`,
            [`${endpoint}/bench/model/resolve/main/model-q4_0.gguf`]
          )
        },
        svc: async (round: number) => {
          const target = await scratch.folder()
          mkdirSync(join(target, 'root'), { mode: 0o700 })
          const daemon = await daemons.start({
            root: join(target, 'root'),
            config: `[swarm]\nenabled = false\n[hub]\nendpoint = "${endpoint}"\n`,
            env: authority
          })
          try {
            await daemon.api.job('/v1/import/hf', { repo: 'bench/warm' })
            const before = daemon.cpuSeconds()
            const { seconds } = await daemon.api.job('/v1/import/hf', { repo: 'bench/model' })
            const cpuSeconds = daemon.cpuSeconds() - before
            say(`round ${round + 1}: ${formatSeconds(seconds)}, CPU ${formatSeconds(cpuSeconds)}`)
            return { seconds, cpuSeconds }
          } finally {
            await daemon.stop()
            await scratch.drop(target)
          }
        },
        // downloads directly from the CDN, without the requests to the hub
        bare: async () => {
          const target = await scratch.folder()
          const child = spawn(
            process.execPath,
            [...process.execArgv, BARE, `${cdn.address}/model-q4_0.gguf`, String(hubBytes), join(target, 'file')],
            { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: { ...process.env, ...authority } }
          )
          const [time] = (await Promise.race([
            once(child, 'message'),
            once(child, 'exit').then(() => Promise.reject(new Error('the bare download failed')))
          ])) as [Timed]
          if (child.exitCode === null) await once(child, 'exit')
          await scratch.drop(target)
          return time
        },
        // add a hash to its time: huggingface_hub only compares lengths
        client: () =>
          into(`f=$("${PYTHON}" "$1" "$2" 2>/dev/null); sync "$f"; openssl dgst -sha256 "$f"`, [CLIENT], {
            HF_ENDPOINT: endpoint,
            HF_HUB_DISABLE_XET: '1',
            HF_HUB_DISABLE_TELEMETRY: '1',
            HF_HUB_DISABLE_PROGRESS_BARS: '1'
          })
      }
      const { client, ...withoutClient } = contestants
      const rounds: Record<string, Timed[]> =
        hasClient === undefined
          ? await interleave<Timed, 'svc' | 'tools' | 'bare'>(runs, withoutClient)
          : await interleave<Timed, 'svc' | 'tools' | 'bare' | 'client'>(runs, contestants)
      const seconds = (name: string): number[] => rounds[name]!.map((time) => time.seconds)
      const cpuPerGib = (name: string): number =>
        median(rounds[name]!.map((time) => time.cpuSeconds)) / (hubBytes / 2 ** 30)
      const [ours, tools] = [median(seconds('svc')), median(seconds('tools'))]
      const cost = median(costs)
      const what = `one file of ${formatSize(hubBytes)} over TLS`
      const oursText = `${formatSeconds(ours)} (${formatRate(hubBytes / ours)})`
      const lines: Line[] = [
        {
          what,
          ours: oursText,
          peer: `curl, sync, openssl ${formatSeconds(tools)}`,
          ratio: tools / ours,
          target: '≥ 0.77',
          met: tools / ours >= 0.77,
          note: `${bestNote(seconds('tools'), seconds('svc'))}; CPU s/GiB ${cpuPerGib('svc').toFixed(2)} against ${cpuPerGib('tools').toFixed(2)}`
        },
        {
          what: 'CPU seconds for a GiB of it',
          ours: cpuPerGib('svc').toFixed(2),
          peer: cpuPerGib('tools').toFixed(2),
          target: '≤ 3.2',
          met: cpuPerGib('svc') <= 3.2,
          note: `SHA-256 takes ${cost.toFixed(2)} CPU s/GB in these rounds: at 0.68 ${atReference(cpuPerGib('svc'), cost).toFixed(2)}`
        }
      ]
      const bare = median(seconds('bare'))
      lines.push({
        what: 'bound: TLS, both hashes and the write in bare Node',
        ours: `${formatSeconds(bare)} (${formatRate(hubBytes / bare)})`,
        peer: `curl, sync, openssl ${formatSeconds(tools)}`,
        ratio: tools / bare,
        target: '',
        note: `${bestNote(seconds('tools'), seconds('bare'))}; CPU s/GiB ${cpuPerGib('bare').toFixed(2)}`
      })
      if (hasClient !== undefined) {
        const theirs = median(seconds('client'))
        lines.push({
          what,
          ours: oursText,
          peer: `huggingface_hub ${hasClient}, sync, openssl ${formatSeconds(theirs)}`,
          ratio: theirs / ours,
          target: '> 1',
          met: theirs > ours,
          note: `${bestNote(seconds('client'), seconds('svc'))}; CPU s/GiB ${cpuPerGib('client').toFixed(2)}`
        })
      }
      return lines
    } finally {
      await end(hub)
      await cdn.stop()
    }
  }
}

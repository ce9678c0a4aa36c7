import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { packAll, packages } from '../../test/tarballs.ts'
import { timeCommand } from '../harness/command.ts'
import { interleave, median } from '../harness/measure.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatMib, formatSeconds } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'

const MAX_LIST_SECONDS = 0.2
const MAX_START_CPU_SECONDS = 0.3

export const installedRow: Row = {
  name: 'installed',
  summary: 'svc as people start it: a cold `svc ls` and the start of the daemon from packed and installed packages',
  async run({ scratch, daemons, profile, say }) {
    const place = await scratch.folder()
    const bin = await install(place)
    say('installed')
    const folder = await scratch.folder()
    writeSafetensors(folder, 'model.safetensors', 1 << 20)
    const root = join(place, 'root')
    mkdirSync(root, { mode: 0o700 })
    const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) }
    const start = () => daemons.start({ root, program: join(bin, 'svcd'), env })

    const first = await start()
    let lists: Record<'svc' | 'node', { readonly seconds: number }[]>
    try {
      await first.api.job('/v1/import/local', { paths: [folder], as: 'bench/model' })
      const listing = { ...env, SVC_SOCKET: first.api.socketPath }
      lists = await interleave(profile.shortRuns, {
        svc: () =>
          timeCommand('"$1" ls >"$2"; grep -q bench/model "$2"', [join(bin, 'svc'), join(place, 'listing')], listing),
        node: () => timeCommand('"$1" -e 0', [process.execPath])
      })
    } finally {
      await first.stop()
    }
    const { starts } = await interleave(profile.runs, {
      starts: async () => {
        const daemon = await start()
        try {
          return { seconds: daemon.startSeconds, cpuSeconds: daemon.cpuSeconds(), ...daemon.memory() }
        } finally {
          await daemon.stop()
        }
      }
    })
    const [list, node] = [
      median(lists.svc.map(({ seconds }) => seconds)),
      median(lists.node.map(({ seconds }) => seconds))
    ]
    const cpuSeconds = median(starts.map((each) => each.cpuSeconds))
    return [
      {
        what: 'installed: `svc ls`, cold',
        ours: formatSeconds(list),
        peer: `an empty Node program ${formatSeconds(node)}`,
        target: '< 200 ms',
        met: list < MAX_LIST_SECONDS
      },
      {
        what: 'installed: start of the daemon to its first answer',
        ours: formatSeconds(median(starts.map(({ seconds }) => seconds))),
        peer: '',
        target: `≤ ${MAX_START_CPU_SECONDS} CPU s`,
        met: cpuSeconds <= MAX_START_CPU_SECONDS,
        note: `CPU ${formatSeconds(cpuSeconds)}, RSS ${formatMib(median(starts.map(({ rssBytes }) => rssBytes)))}`
      }
    ]
  }
}

/** Packs all packages and installs them with npm, as a stranger would. Gives the folder of the programs. @throws the error of npm */
async function install(place: string): Promise<string> {
  const tarball = await packAll(join(place, 'tarballs'))
  const prefix = join(place, 'prefix')
  // npm as it comes, without what pnpm tells its children
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([key]) => !/^npm_(?!config_(?:registry|cache)$)/i.test(key))
  )
  const names = packages.map(({ name }) => tarball(name))
  const flags = ['install', '--no-audit', '--no-fund', '--prefer-offline', '--global', '--prefix', prefix]
  await promisify(execFile)('npm', [...flags, ...names], { env, maxBuffer: 2 ** 24 })
  return join(prefix, 'bin')
}

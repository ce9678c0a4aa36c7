import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { timeCommand } from '../harness/command.ts'
import { interleave, median } from '../harness/measure.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatSeconds } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'

const MAIN = new URL('../../packages/cli/dist/main.js', import.meta.url).pathname
const MAX_SECONDS = 0.2

export const cliRow: Row = {
  name: 'cli',
  summary: 'a cold `svc ls` against `git --version`',
  async run({ scratch, daemons, profile }) {
    if (!existsSync(MAIN)) throw new Error(`${MAIN} does not exist; run the build first`)
    const folder = await scratch.folder()
    writeSafetensors(folder, 'model.safetensors', 1 << 20)
    const place = await scratch.folder()
    mkdirSync(join(place, 'root'), { mode: 0o700 })
    const daemon = await daemons.start({ root: join(place, 'root') })
    try {
      await daemon.api.job('/v1/import/local', { paths: [folder], as: 'bench/model' })
      const env = { ...process.env, SVC_SOCKET: daemon.api.socketPath }
      const rounds = await interleave(profile.shortRuns, {
        // check the output, so that an error cannot count as a fast listing
        svc: () =>
          timeCommand(
            '"$1" "$2" ls >"$3"; grep -q bench/model "$3"',
            [process.execPath, MAIN, join(place, 'listing')],
            env
          ),
        node: () => timeCommand('"$1" -e 0', [process.execPath]),
        git: () => timeCommand('git --version')
      })
      const seconds = (name: keyof typeof rounds): number => median(rounds[name].map((time) => time.seconds))
      return [
        {
          what: '`svc ls`, cold',
          ours: formatSeconds(seconds('svc')),
          peer: `git --version ${formatSeconds(seconds('git'))}`,
          target: '< 200 ms',
          met: seconds('svc') < MAX_SECONDS,
          note: `an empty Node program ${formatSeconds(seconds('node'))}`
        }
      ]
    } finally {
      await daemon.stop()
    }
  }
}

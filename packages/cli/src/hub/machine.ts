import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { promisify } from 'node:util'
import type { Session } from '../session.ts'

/** What models have to fit into. */
export interface Machine {
  readonly ramBytes: number
  /** Of all graphics cards together; 0 if the system reports none. */
  readonly vramBytes: number
  /** Undefined if the daemon does not know it. */
  readonly diskBytes: number | undefined
}

const run = promisify(execFile)
const DRM = '/sys/class/drm'
const NVIDIA_TIMEOUT_MS = 3_000

/** The memory and the free disk of this machine, which is the daemon's: its socket is a file. */
export async function thisMachine({ client, terminal }: Session): Promise<Machine> {
  const [{ store }, amd, nvidia] = await Promise.all([client.status(), amdBytes(), nvidiaBytes(terminal.env)])
  // a limit of the control group counts
  const limit = process.constrainedMemory()
  const ramBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return { ramBytes, vramBytes: amd + nvidia, diskBytes: store.freeBytes }
}

async function amdBytes(): Promise<number> {
  const cards = (await readdir(DRM).catch(() => [])).filter((name) => /^card\d+$/.test(name))
  const sizes = cards.map((card) => readFile(`${DRM}/${card}/device/mem_info_vram_total`, 'utf8').catch(() => '0'))
  return (await Promise.all(sizes)).reduce((sum, text) => sum + (Number(text) || 0), 0)
}

/** The sum of what `nvidia-smi` prints, in MiB on each line; 0 without that program. */
async function nvidiaBytes(env: Session['terminal']['env']): Promise<number> {
  const args = ['--query-gpu=memory.total', '--format=csv,noheader,nounits']
  const answer = run('nvidia-smi', args, { timeout: NVIDIA_TIMEOUT_MS, env: { ...env } })
  const text = await answer.then(
    ({ stdout }) => stdout,
    () => ''
  )
  return text.split('\n').reduce((sum, line) => sum + (Number(line) || 0) * 2 ** 20, 0)
}

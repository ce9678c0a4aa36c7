import { spawn, spawnSync } from 'node:child_process'

/** Elapsed and CPU time of a finished command. */
export interface Timed {
  readonly seconds: number
  /** User and system time of the command and its children. */
  readonly cpuSeconds: number
}

/**
 * Runs a line of shell with `args` as "$1", "$2" … and gives its times, without those of the shell's own start.
 * @throws Error with the command's messages when it fails
 */
export function timeCommand(
  line: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env
): Promise<Timed> {
  return new Promise((resolve, reject) => {
    const script = `TIMEFORMAT='%R %U %S'; set -e; time { ${line} ; }`
    const child = spawn('bash', ['-c', script, 'bench', ...args], { stdio: ['ignore', 'ignore', 'pipe'], env })
    let messages = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      messages = (messages + text).slice(-65_536)
    })
    child.on('error', reject)
    child.on('close', (code) => {
      const times = messages.trim().split('\n').at(-1)?.split(' ').map(Number)
      if (code !== 0 || times?.length !== 3 || times.some(Number.isNaN)) {
        return reject(new Error(`${line}: exit code ${code}\n${messages}`))
      }
      const [seconds, user, system] = times as [number, number, number]
      resolve({ seconds, cpuSeconds: user + system })
    })
  })
}

/** The first line of a program's `--version` output; undefined if it is not installed. */
export function versionOf(program: string, ...args: string[]): string | undefined {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  return status === 0 ? (stdout + stderr).trim().split('\n')[0] : undefined
}

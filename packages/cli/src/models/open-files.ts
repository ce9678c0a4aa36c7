import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'

/** A process that has files of a folder open or mapped. */
export interface FileUser {
  readonly pid: number
  /** As the process calls itself, such as `llama-server`. */
  readonly program: string
  /** Unix time in milliseconds when it began. */
  readonly startedAtMs: number
  /** Real paths of the files. */
  readonly paths: ReadonlySet<string>
}

/**
 * The processes of this user, or for root all, that use files below a folder, from /proc; runtimes map weights and close them.
 * Empty on systems without /proc. @param folder a real path
 */
export function usersOfFilesIn(folder: string): FileUser[] {
  if (process.platform !== 'linux') return []
  const prefix = `${folder}/`
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => userAt(`/proc/${pid}`, Number(pid), prefix) ?? [])
}

function userAt(proc: string, pid: number, prefix: string): FileUser | undefined {
  try {
    const paths = new Set([...mappedPaths(proc), ...openPaths(proc)].filter((path) => path.startsWith(prefix)))
    if (paths.size === 0) return undefined
    return { pid, program: readFileSync(`${proc}/comm`, 'utf8').trim(), startedAtMs: statSync(proc).ctimeMs, paths }
  } catch {
    // it has ended, or belongs to somebody else
    return undefined
  }
}

/** The sixth column, which may have blanks. */
const mappedPaths = (proc: string): string[] =>
  readFileSync(`${proc}/maps`, 'utf8')
    .split('\n')
    .flatMap((line) => /^(?:\S+\s+){5}(\/.*)$/.exec(line)?.[1] ?? [])

const openPaths = (proc: string): string[] =>
  readdirSync(`${proc}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`${proc}/fd/${fd}`)]
    } catch {
      return []
    }
  })

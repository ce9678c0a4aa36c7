/** A system call that succeeded; `begun` and `ended` are lines of the log. */
export interface SystemCall {
  readonly call: string
  /** Its arguments, as printed by strace. */
  readonly text: string
  readonly begun: number
  ended: number
}

/** The successful calls of an `strace -f` log, in the order of their ends; those under way at its end come last, and may have failed. */
export function parseSystemCalls(log: string): SystemCall[] {
  const calls: SystemCall[] = []
  const open = new Map<string, SystemCall>()
  log.split('\n').forEach((line, at) => {
    const begin = /^(\d+)\s+(\w+)\((.*)/.exec(line)
    if (begin !== null) {
      const call: SystemCall = { call: begin[2] as string, text: begin[3] as string, begun: at, ended: at }
      if (line.endsWith('<unfinished ...>')) open.set(begin[1] as string, call)
      else if (!line.includes(' = -1 ')) calls.push(call)
      return
    }
    const resumed = /^(\d+)\s+<\.\.\. \w+ resumed>/.exec(line)
    const call = open.get(resumed?.[1] ?? '')
    if (resumed === null || call === undefined) return
    open.delete(resumed[1] as string)
    call.ended = at
    if (!line.includes(' = -1 ')) calls.push(call)
  })
  // strace was told to leave before it could say how these ended, as an answer that made its reader tell it so
  for (const call of open.values()) calls.push({ ...call, ended: Number.POSITIVE_INFINITY })
  return calls
}

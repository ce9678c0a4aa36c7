// The side of a peer that the benchmark talks to, by JSON lines, as to `../swarm/engine-peer.ts`.
import { createInterface } from 'node:readline'

/** The torrent to seed from, or to fetch into, the folder `save`. */
export interface AddCommand {
  readonly torrent: string
  readonly save: string
  readonly seed?: boolean
  readonly peers?: readonly (readonly [host: string, port: number])[]
}

export const tell = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`)

/** Does what it is told until its parent ends it, or is gone. */
export async function obey(add: (command: AddCommand) => void): Promise<never> {
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line) as AddCommand & { readonly cmd: string }
    if (command.cmd === 'quit') break
    if (command.cmd === 'add') add(command)
    if (command.cmd !== 'usage') continue
    const usage = process.resourceUsage()
    const cpuSeconds = (usage.userCPUTime + usage.systemCPUTime) / 1e6
    tell({ event: 'usage', cpuSeconds, maxRssBytes: usage.maxRSS * 1024 })
  }
  process.exit(0)
}

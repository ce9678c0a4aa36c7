import { execFileSync } from 'node:child_process'

const ip = (...args: readonly string[]): string => execFileSync('ip', args, { encoding: 'utf8' })
const PREFIX = 'svcroll'
const HUB = `${PREFIX}-hub`
/** What a queue holds before it drops: as much as a switch port has. */
const QUEUE_MS = 100

/** A machine of the measurement: a network namespace with one shaped link. */
export interface Machine {
  readonly space: string
  readonly address: string
}

/**
 * A network of namespaces on this machine: per zone a bridge, per machine a link that carries so much in each direction, and one link
 * between zones, which is wide and counted. Nothing of it touches the machine's own interfaces. Needs root, `ip` and `tc` (`tbf`).
 */
export class Network {
  readonly zones: number
  readonly #spaces: string[] = []

  private constructor(zones: number) {
    this.zones = zones
  }

  /** Takes away what an earlier run left. @throws when namespaces or shaping are not to be had */
  static create(zones = 1): Network {
    Network.sweep()
    const network = new Network(zones)
    ip('netns', 'add', HUB)
    network.#spaces.push(HUB)
    ip('-n', HUB, 'link', 'set', 'lo', 'up')
    for (let zone = 0; zone < zones; zone += 1) {
      ip('-n', HUB, 'link', 'add', `zone${zone}`, 'type', 'bridge')
      ip('-n', HUB, 'link', 'set', `zone${zone}`, 'up')
    }
    for (let zone = 1; zone < zones; zone += 1) {
      ip('-n', HUB, 'link', 'add', `trunk${zone}`, 'type', 'veth', 'peer', 'name', `other${zone}`)
      ip('-n', HUB, 'link', 'set', `trunk${zone}`, 'master', 'zone0', 'up')
      ip('-n', HUB, 'link', 'set', `other${zone}`, 'master', `zone${zone}`, 'up')
    }
    // Where the tracker lives: reached by all.
    ip('-n', HUB, 'addr', 'add', '10.99.255.250/16', 'dev', 'zone0')
    return network
  }

  static sweep(): void {
    const left = ip('netns', 'list').split('\n')
    for (const line of left) {
      const [name = ''] = line.split(' ')
      if (name.startsWith(`${PREFIX}-`)) ip('netns', 'del', name)
    }
  }

  get hub(): Machine {
    return { space: HUB, address: '10.99.255.250' }
  }

  /** @param megabits of its link, each way; 0: not shaped */
  machine(index: number, megabits: number, zone = 0): Machine {
    const space = `${PREFIX}-${index}`
    const address = `10.99.0.${index + 1}`
    ip('netns', 'add', space)
    this.#spaces.push(space)
    ip('-n', space, 'link', 'set', 'lo', 'up')
    ip('-n', HUB, 'link', 'add', `port${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space)
    ip('-n', HUB, 'link', 'set', `port${index}`, 'master', `zone${zone}`, 'up')
    ip('-n', space, 'addr', 'add', `${address}/16`, 'dev', 'eth0')
    ip('-n', space, 'link', 'set', 'eth0', 'up')
    if (megabits > 0) {
      shape(space, 'eth0', megabits)
      shape(HUB, `port${index}`, megabits)
    }
    return { space, address }
  }

  /** Bytes that came into zone `zone` (not 0) over its trunk, and went out of it, all headers included. */
  crossed(zone: number): { readonly inBytes: number; readonly outBytes: number } {
    const [{ stats64 }] = JSON.parse(ip('-s', '-j', '-n', HUB, 'link', 'show', `other${zone}`))
    return { inBytes: stats64.rx.bytes, outBytes: stats64.tx.bytes }
  }

  remove(): void {
    for (const space of this.#spaces.splice(0).reverse()) ip('netns', 'del', space)
  }
}

function shape(space: string, device: string, megabits: number): void {
  const limit = Math.round((megabits * 1e6 * QUEUE_MS) / 8000)
  const args = `qdisc add dev ${device} root tbf rate ${megabits}mbit burst 32kb limit ${limit}`
  execFileSync('ip', ['netns', 'exec', space, 'tc', ...args.split(' ')])
}

/** The words in front of a command that run it on that machine, before whatever else this one has to do: links are measured, not neighbours. */
export const on = ({ space }: Machine): readonly string[] => ['chrt', '--rr', '1', 'ip', 'netns', 'exec', space]

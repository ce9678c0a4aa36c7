import { execFileSync } from 'node:child_process'

const ip = (...args: readonly string[]): string => execFileSync('ip', args, { encoding: 'utf8' })
const PREFIX = 'svcroll'
const HUB = `${PREFIX}-hub`
/** Queue length of a link, about that of a switch port. */
const QUEUE_MS = 100

/** A simulated machine: a network namespace with one shaped link. */
export interface Machine {
  readonly space: string
  readonly address: string
}

/**
 * A network of namespaces: a bridge per zone, a rate-limited full-duplex link per machine, and unlimited trunks between zones whose
 * traffic is counted. Does not touch the host's interfaces. Needs root, `ip` and `tc` (`tbf`).
 */
export class Network {
  readonly zones: number
  readonly #spaces: string[] = []

  private constructor(zones: number) {
    this.zones = zones
  }

  /** Also removes namespaces left by an earlier run. @throws if namespaces or traffic shaping are unavailable */
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
    // the address of the tracker, which every machine can reach
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

  /** @param megabits rate of its link in each direction; 0: unlimited */
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

  /** Traffic over the trunk of a zone other than 0, headers included. */
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

/** A command prefix that runs a command on that machine; with real-time priority, so that other load on the host does not skew the result. */
export const on = ({ space }: Machine): readonly string[] => ['chrt', '--rr', '1', 'ip', 'netns', 'exec', space]

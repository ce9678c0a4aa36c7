// The metrics at the port and at the socket, their page and their dashboard, compared with a running daemon.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '@svc/internal-clock'
import { EventLoop, formatMetrics } from '@svc/internal-metrics'
import { formatAddress } from '@svc/internal-net'
import { block } from '@svc/testkit/block'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { askCommand } from '../../src/commands/probe.ts'
import { createLog } from '../../src/log.ts'
import { listenForMetrics } from '../../src/metrics/metrics-listener.ts'
import { type TestDaemon, testDaemon } from '../support/daemon.ts'

const root = join(import.meta.dirname, '../../../..')
const undo: (() => void | Promise<void>)[] = []
let daemon: TestDaemon
let socketPath: string
let port: string
let overSocket: string
let overPort: string

beforeAll(async () => {
  daemon = await testDaemon(
    {
      networks: { swarm: BUILTIN_NETWORKS.swarm!, hub: BUILTIN_NETWORKS.hub! },
      fileConfig: {
        swarm: { enabled: true, dht: false, peer_addr: '127.0.0.1:0' },
        mirror: { hub_addr: '127.0.0.1:0', oci_addr: '127.0.0.1:0', on_demand: true },
        hub: { endpoint: 'http://127.0.0.1:9' },
        metrics: { addr: '127.0.0.1:0' }
      }
    },
    (work) => void undo.unshift(work)
  )
  ;({ socketPath } = daemon)
  port = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8')).metricsAddress
  overPort = await (await fetch(`http://${port}/metrics`)).text()
  overSocket = await askCommand('metrics', socketPath)
})
afterAll(async () => {
  for (const step of undo) await step()
})

interface Family {
  readonly type: string
  readonly help: string
  readonly labels: Set<string>
}

/** The families of an exposition; checks each line, and that samples follow the head of their family. */
function familiesOf(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  let current: { readonly name: string; readonly family: Family } | undefined
  let help: readonly [string, string] | undefined
  for (const line of text.trimEnd().split('\n')) {
    const head = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line)
    if (head?.[1] === 'HELP') help = [head[2]!, head[3]!]
    else if (head !== null) {
      const [, , name, type] = head as unknown as [string, string, string, string]
      expect(help?.[0]).toBe(name)
      expect(families.has(name), name).toBe(false)
      current = { name, family: { type, help: help![1], labels: new Set() } }
      families.set(name, current.family)
    } else {
      const sample = /^([a-z_]+)(?:\{(.+)\})? (-?[0-9.]+(?:e[+-][0-9]+)?)$/.exec(line)
      expect(sample, line).not.toBeNull()
      expect([current!.name, `${current!.name}_sum`, `${current!.name}_count`]).toContain(sample![1])
      for (const [, label] of sample![2]?.matchAll(/([a-z_]+)="[^"]*"(?:,|$)/g) ?? [])
        current!.family.labels.add(label!)
    }
  }
  return families
}

const page = readFileSync(join(root, 'docs/metrics.md'), 'utf8')
const rows = [...page.matchAll(/^\| `([a-z_]+)` \| (\w+) \|(.*?)\| .+ \|$/gm)].map(([, name, type, labels]) => ({
  name: name!,
  type: type!,
  labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label!).sort()
}))

describe('the figures', () => {
  it('are the same at the socket and at the port', () => {
    expect([...familiesOf(overSocket).keys()]).toEqual([...familiesOf(overPort).keys()])
  })

  it('are exactly those of the page, with their types and labels', () => {
    const found = [...familiesOf(overPort)].map(([name, { type, labels }]) => ({
      name,
      type,
      labels: [...labels].sort()
    }))
    const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)
    expect(found.sort(byName)).toEqual(rows.sort(byName))
  })

  it('keep to the conventions of Prometheus', () => {
    for (const [name, { type, help, labels }] of familiesOf(overPort)) {
      expect(name).toMatch(/^(?:svc|process)(?:_[a-z]+)+$/)
      expect(name.endsWith('_total'), name).toBe(type === 'counter')
      expect(name).not.toMatch(
        /_(?:sum|count|bucket|gauge|counter|ms|milliseconds|kb|mb|kilobytes|megabytes|percent)(?:_|$)/
      )
      expect(labels.has('quantile'), name).toBe(type === 'summary')
      expect(labels.has('le')).toBe(false)
      expect(help.length, name).toBeGreaterThan(5)
    }
  })

  it('count what listeners do', async () => {
    const answers = async (code: string): Promise<number> =>
      Number(
        new RegExp(`^svc_http_responses_total\\{listener="metrics",code="${code}"\\} (\\d+)$`, 'm').exec(
          await askCommand('metrics', socketPath)
        )![1]
      )
    const before = await answers('4xx')
    await (await fetch(`http://${port}/absent`)).text()
    await expect.poll(() => answers('4xx')).toBe(before + 1)
    expect(overPort).toMatch(/^svc_http_connections\{listener="metrics"\} [1-9]/m)
    expect(overPort).toMatch(/^svc_http_connections_limit\{listener="hub"\} 512$/m)
  })

  it('are collected once for concurrent requests', async () => {
    const listed: number[] = []
    const listener = await listenForMetrics('127.0.0.1:0', {
      text: async () => `${listed.push(1)}\n`,
      problem: () => undefined,
      isReady: () => true,
      clock: systemClock,
      ports: daemon.running.context.ports,
      log: createLog('silent')
    })
    try {
      const ask = async () => (await fetch(`http://${formatAddress(listener.address)}/metrics`)).text()
      const texts = await Promise.all(Array.from({ length: 200 }, ask))
      // a second may end while they are on their way
      expect(new Set(texts).size).toBeLessThan(100)
      expect(listed.length).toBe(new Set(texts).size)
    } finally {
      await listener.close()
    }
  })

  it('escape what labels hold', () => {
    const samples = [{ labels: { a: 'x"y\\z\n' }, value: 1 }]
    expect(formatMetrics([{ name: 'm', type: 'gauge', help: 'a "b"\n', samples }])).toBe(
      '# HELP m a "b"\\n\n# TYPE m gauge\nm{a="x\\"y\\\\z\\n"} 1\n'
    )
  })

  it('report the delay of the event loop', async () => {
    const loop = new EventLoop()
    try {
      await expect
        .poll(() => {
          block(120)
          const [{ samples }] = loop.metrics() as [ReturnType<EventLoop['metrics']>[number]]
          return Math.max(...samples.filter(({ labels }) => labels?.quantile === '0.99').map(({ value }) => value))
        })
        .toBeGreaterThan(0.05)
    } finally {
      loop.close()
    }
  })
})

describe('the dashboard', () => {
  const dashboard = JSON.parse(readFileSync(join(root, 'deploy/grafana/svc.json'), 'utf8'))
  const queries: string[] = dashboard.panels.flatMap(({ targets = [] }: { targets?: { expr: string }[] }) =>
    targets.map(({ expr }) => expr)
  )

  it('asks for metrics and labels that there are', () => {
    const families = familiesOf(overPort)
    expect(queries.length).toBeGreaterThan(20)
    for (const query of queries) {
      const names = [...query.matchAll(/\b((?:svc|process)_[a-z_]+)(\{[^}]*\})?/g)]
      expect(names.length, query).toBeGreaterThan(0)
      for (const [, name, selector = ''] of names) {
        const family = families.get(name!)
        expect(family, `${name} in ${query}`).toBeDefined()
        for (const [, label] of selector.matchAll(/([a-z_]+)=~?"/g))
          if (label !== 'instance') expect([...family!.labels], query).toContain(label)
      }
      // counters are only looked at as rates
      for (const [, name] of query.matchAll(/(?<!(?:rate|increase)\()\b((?:svc|process)_[a-z_]+_total)\b/g))
        expect(name, query).toBeUndefined()
    }
  })

  it('shows every metric of the page', () => {
    const shown = new Set(queries.flatMap((query) => query.match(/\b(?:svc|process)_[a-z_]+/g) ?? []))
    expect(rows.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual(['svc_jobs_kept'])
  })

  it('has panels that do not cover one another', () => {
    const places = new Set<string>()
    for (const { gridPos, id } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(places.has(`${x} ${y}`), `panel ${id}`).toBe(false)
          places.add(`${x} ${y}`)
        }
    }
  })
})

describe('health and readiness', () => {
  it('are answered by a running daemon', async () => {
    expect(await askCommand('health', socketPath)).toBe('ok\n')
    expect(await askCommand('ready', socketPath)).toBe('ok\n')
    expect((await fetch(`http://${port}/healthz`)).status).toBe(200)
    expect((await fetch(`http://${port}/readyz`)).status).toBe(200)
  })

  it('are refused without one', async () => {
    const nowhere = join(socketPath, '../nowhere/s.sock')
    for (const question of ['metrics', 'health', 'ready'] as const)
      await expect(askCommand(question, nowhere)).rejects.toMatchObject({ code: 'E_SOURCE_UNAVAILABLE' })
  })
})

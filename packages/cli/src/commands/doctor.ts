import type { DamagedRecord, Inventory, Status } from '@svc/client'
import { buckets } from '../doctor/buckets.ts'
import { daemon, fileLimit, node, socket } from '../doctor/daemon.ts'
import { type Check, codeOf, type DoctorInput, type Finding, type Level } from '../doctor/finding.ts'
import { models, views } from '../doctor/models.ts'
import { clock, dht, listeners, proxies, sharing } from '../doctor/network.ts'
import { fileSystem, leftovers, records, space, store } from '../doctor/store.ts'
import { CliError } from '../errors.ts'
import { count } from '../format.ts'
import { membersOf } from '../models/models-here.ts'
import type { Session } from '../session.ts'

/** In the order of the report. */
const CHECKS: Readonly<Record<string, Check>> = {
  node,
  daemon,
  socket,
  store,
  records,
  models,
  views,
  space,
  leftovers,
  'file system': fileSystem,
  files: fileLimit,
  listeners,
  sharing,
  DHT: dht,
  proxies,
  buckets,
  clock
}

const MARKS: Readonly<Record<Level, string>> = { ok: 'ok  ', note: 'note', warn: 'warn', bad: 'BAD ' }

/** `svc doctor`. @throws CliError after the findings: exit code 1 when one is `bad`, 5 for damage to something kept */
export async function doctor(session: Session): Promise<void> {
  const findings = await examine(session)
  const bad = findings.filter(({ level }) => level === 'bad')
  if (session.json) session.document({ ok: bad.length === 0, findings })
  else tell(session, findings)
  if (bad.length === 0) return
  throw new CliError(
    bad.some(({ isDamage }) => isDamage) ? 'verification' : 'failed',
    `${count(bad.length, 'problem')} to fix: ${bad.map(({ check }) => check).join(', ')}`,
    {
      code: 'E_UNHEALTHY'
    }
  )
}

/** The findings of all checks, in the order of the report. */
export async function examine(session: Session): Promise<readonly Finding[]> {
  const subject = await subjectOf(session)
  const findings: Finding[] = []
  for (const [name, check] of Object.entries(CHECKS)) {
    try {
      for (const found of await check(subject)) findings.push({ check: name, ...found })
    } catch (error) {
      // a check that fails to run is a finding itself; the others continue.
      findings.push({ check: name, level: 'warn', text: `cannot be checked: ${codeOf(error)}`, advice: 'report this' })
    }
  }
  return findings
}

async function subjectOf(session: Session): Promise<DoctorInput> {
  const { client, terminal, signal, version } = session
  const subject = {
    env: terminal.env,
    clock: session.clock,
    platform: process.platform,
    uid: process.getuid?.() ?? 0,
    socketPath: client.socketPath,
    version
  }
  try {
    const status = await client.status()
    const inventory = await client.models().catch(() => undefined)
    return {
      ...subject,
      status,
      damaged: damagedOf(status, inventory),
      models: inventory === undefined ? [] : membersOf(inventory),
      views: await client.views().catch(() => []),
      silence: undefined
    }
  } catch (error) {
    signal.throwIfAborted()
    return {
      ...subject,
      status: undefined,
      damaged: [],
      models: [],
      views: [],
      silence: error instanceof Error ? error.message : String(error)
    }
  }
}

/** The status has the records of some seconds ago, the list those of now. */
function damagedOf(status: Status, inventory: Inventory | undefined): DamagedRecord[] {
  const all = [...(status.damaged ?? []), ...(inventory?.damaged ?? [])]
  return [...new Map(all.map((record) => [record.file, record])).values()]
}

function tell(session: Session, findings: readonly Finding[]): void {
  const width = Math.max(...findings.map(({ check }) => check.length))
  for (const { check, level, text, advice } of findings) {
    if (session.quiet && (level === 'ok' || level === 'note')) continue
    session.print(`${MARKS[level]}  ${check.padEnd(width)}  ${text}`)
    if (advice !== undefined) session.print(`${' '.repeat(width + 8)}→ ${advice}`)
  }
}

import type { WhyResult } from '@svc/client'
import { count, formatSince } from '../format.ts'
import { refsOf, shortRef } from '../models/reference.ts'
import type { Session } from '../session.ts'

/** Who gets bytes through a door. */
const TO_WHOM: Readonly<Record<string, string>> = {
  swarm: 'peers',
  webseed: 'clients of webseed_addr',
  'hub-mirror': 'clients of hub_addr',
  'oci-mirror': 'clients of oci_addr',
  's3-mirror': 'clients of s3_addr',
  publish: 'readers of what svc publish writes',
  export: 'readers of what svc export writes',
  push: 'users of a registry'
}

/** `svc why REF`: who gets a model, through which door, and why; `ns/name` stands for all its quants. */
export async function why(session: Session, text: string): Promise<void> {
  const found: WhyResult[] = []
  for (const ref of await refsOf(session, [text])) found.push(await session.client.why(ref))
  if (session.json) return session.document({ models: found })
  for (const result of found) {
    session.print(shortRef(result.ref))
    for (const line of factsOf(result)) session.print(`  ${line}`)
    for (const { where, at } of result.copies ?? [])
      session.print(`  also at: ${where}, seen ${formatSince(at, session.clock.now())}`)
    const rows = result.doors.map(({ door, open, given, withheld }) => [
      `  ${door}`,
      TO_WHOM[door] ?? '',
      given ? (open ? 'given' : 'closed') : 'withheld',
      withheld?.reason ?? (open ? '' : 'not enabled in the configuration')
    ])
    session.table([['  DOOR', 'TO', '', 'WHY'], ...rows])
  }
}

const CREDENTIALS: Readonly<Record<string, string>> = {
  'hub-token': "the hub's token",
  'registry-login': 'a login at the registry',
  'webseed-key': 'the key of a webseed'
}

function factsOf(result: WhyResult) {
  const {
    record,
    source,
    importedAt,
    access,
    by,
    confirmedPublicAt,
    unproven,
    malformed,
    marked,
    decision,
    companions
  } = result
  if (record === 'absent') return ['its origin is not recorded']
  if (record === 'damaged') return ['the record of its origin is damaged']
  const from = [source?.kind, source?.repo, source?.revision].filter((part) => part !== undefined).join(' ')
  return [
    `from: ${from}${importedAt === undefined ? '' : `, imported ${importedAt}`}`,
    `access: ${access}${by === undefined ? '' : `, fetched with ${CREDENTIALS[by] ?? by}`}`,
    ...(confirmedPublicAt === undefined ? [] : [`the hub confirmed that it is public: ${confirmedPublicAt}`]),
    ...(unproven === undefined ? [] : [`files that its source has not delivered: ${unproven.join(', ')}`]),
    ...(malformed === undefined ? [] : [`weights that no runtime can load: ${malformed.join(', ')}`]),
    ...(marked === true ? ['marked by its exporter'] : []),
    ...(companions === undefined ? [] : besideOf(companions)),
    ...(decision === undefined
      ? []
      : [`the owner said: ${decision.is}${decision.at === undefined ? '' : `, ${decision.at}`}`])
  ]
}

function besideOf({ given, own }: NonNullable<WhyResult['companions']>): string[] {
  const stay = 'not shared, since no loader reads such names (an import with --companions all shares them)'
  return [
    ...(given === 0 ? [] : [`shared with it: ${count(given, 'companion')}`]),
    ...(own.length === 0 ? [] : [`${own.join(', ')}: ${stay}`])
  ]
}

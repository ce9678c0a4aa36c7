import type { Inventory } from '@svc/client'
import { CliError } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { formatTable, shortDigest } from '../format.ts'
import type { Session } from '../session.ts'

/** `svc ls [TEXT]` */
export async function ls(session: Session, text: string | undefined): Promise<void> {
  const inventory = await session.client.models()
  const fits = (repo: string): boolean => text === undefined || repo.includes(text.toLowerCase())
  const namespaces = inventory.namespaces.filter(({ ns, name }) => fits(`${ns}/${name}`))
  const tags = inventory.tags.filter(({ repo }) => fits(repo))
  if (session.json) return session.document({ ...inventory, namespaces, tags })
  if (session.quiet) {
    for (const { ns, name, quants } of namespaces) for (const quant of quants) session.print(`${ns}/${name}:${quant}`)
    return
  }
  if (namespaces.length === 0) {
    const empty = 'nothing here yet; import with: svc import local PATH --as ns/name'
    return session.note(text === undefined ? empty : `nothing matches ${text}`)
  }
  const rows = namespaces.map(({ ns, name, quants, indexPresent }) => {
    const own = tags.filter(({ repo }) => repo === `${ns}/${name}`).map(({ tag }) => tag)
    return [`${ns}/${name}`, indexPresent ? quants.join(', ') || '(index invalid)' : '(index missing)', own.join(', ')]
  })
  for (const line of formatTable([['MODEL', 'QUANTS', tags.length > 0 ? 'TAGS' : ''], ...rows])) session.print(line)
}

/** `svc show ns/name`: the quants and tags of one repository. */
export async function showRepo(session: Session, repo: string): Promise<void> {
  const inventory = await session.client.models()
  const entry = inventory.namespaces.find(({ ns, name }) => `${ns}/${name}` === repo)
  if (entry === undefined) throw unknownRepo(inventory, repo)
  const tags = inventory.tags.filter((tag) => tag.repo === repo)
  if (session.json) return session.document({ ...entry, tags })
  session.print(`${repo}  index ${shortDigest(entry.indexDigest)}${entry.indexPresent ? '' : ' (missing)'}`)
  for (const quant of entry.quants) session.print(`  ${repo}:${quant}`)
  for (const { tag, digest } of tags) session.print(`  tag ${tag}  ${shortDigest(digest)}`)
}

function unknownRepo(inventory: Inventory, repo: string): CliError {
  const ns = repo.split('/', 1)[0]
  const candidates = inventory.namespaces.filter((entry) => entry.ns === ns).map((entry) => `${entry.ns}/${entry.name}`)
  return new CliError(EXIT.notFound, `there is no ${repo} here`, { code: 'E_UNKNOWN_REF', candidates })
}

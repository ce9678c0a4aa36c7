import type { TagEntry } from '@svc/client'
import { parseRef, parseRepoId, parseTag } from '@svc/ref'
import { CliError, usage } from '../errors.ts'
import { asRepo, canonicalRef, fullName } from '../models/reference.ts'
import type { Session } from '../session.ts'

export interface TagOptions {
  readonly rm?: boolean
  readonly ls?: boolean
}

/** `svc tag REF TAG`, `svc tag --rm REF TAG`, `svc tag [--ls] [NS/NAME]`: the short forms of the commands below. */
export async function tag(
  session: Session,
  ref: string | undefined,
  name: string | undefined,
  { rm = false, ls = false }: TagOptions
): Promise<void> {
  if (rm && ls) throw usage('--rm and --ls exclude each other', 'svc tag --help')
  if (name === undefined && !rm) return tagLs(session, ref)
  if (ls || ref === undefined) throw usage('too many or too few arguments', 'svc tag --help')
  if (rm) return tagRm(session, name === undefined ? ref : `${await repoOf(session, ref)}:${name}`)
  const repo = asRepo(await fullName(session, ref))
  if (repo !== undefined) return set(session, repo, name!, undefined)
  const canonical = await canonicalRef(session, ref)
  const { ns, name: model } = parseRef(canonical)
  // the index that the reference selects in, which an older tag may name
  const { indexDigest } = await session.client.resolve(canonical)
  if (indexDigest === undefined)
    throw usage('a digest is of one model, and a tag names an index', 'svc tag NS/NAME TAG')
  return set(session, `${ns}/${model}`, name!, indexDigest)
}

/** `svc tag set NS/NAME:TAG [sha256:<hex>]` */
export async function tagSet(session: Session, typed: string, digest: string | undefined): Promise<void> {
  const [repo, name] = await split(session, typed)
  return set(session, repo, name, digest)
}

/** `svc tag rm NS/NAME:TAG` */
export async function tagRm(session: Session, typed: string): Promise<void> {
  const [repo, tag] = await split(session, typed)
  const removed = await session.client.removeTag({ ...parseRepoId(repo), tag: parseTag(tag) })
  if (session.json) return session.document(removed)
  session.print(`removed ${spoken(removed)}`)
}

/** `svc tag ls [NS/NAME]`: one tag per line. Records that cannot be read are named, and the exit code is 1. */
export async function tagLs(session: Session, typed: string | undefined): Promise<void> {
  const repo = typed === undefined ? undefined : await repoOf(session, typed)
  const list = await session.client.tags(repo)
  if (session.json) session.document(list)
  else for (const each of list.tags) session.print(spoken(each))
  const { damaged = [] } = list
  // the others are listed by now
  if (damaged.length > 0)
    throw new CliError('failed', damaged.map(({ file, what }) => `${file} cannot be read: ${what}`).join('; '))
}

async function set(session: Session, repo: string, tag: string, digest: string | undefined): Promise<void> {
  const named = { ...parseRepoId(repo), tag: parseTag(tag) }
  const done = await session.client.setTag({ ...named, ...(digest !== undefined && { digest }) })
  if (session.json) return session.document(done)
  session.print(spoken(done))
}

const spoken = ({ repo, tag, digest }: TagEntry): string => `${repo}:${tag} ${digest}`

/** `NS/NAME:TAG`, or `NAME:TAG`, in parts. @throws CliError */
async function split(session: Session, typed: string): Promise<readonly [repo: string, tag: string]> {
  const colon = typed.indexOf(':', typed.startsWith('svc:///') ? 'svc:///'.length : 0)
  if (colon < 0) throw usage(`${JSON.stringify(typed)} names no tag; write NS/NAME:TAG`, 'svc tag --help')
  return [await repoOf(session, typed.slice(0, colon)), typed.slice(colon + 1)]
}

/** The repository that was typed, also as a reference to one of its models. @throws CliError, RefError */
async function repoOf(session: Session, typed: string): Promise<string> {
  const full = await fullName(session, typed)
  const repo = asRepo(full)
  if (repo !== undefined) return repo
  const { ns, name } = parseRef(await canonicalRef(session, full))
  return `${ns}/${name}`
}

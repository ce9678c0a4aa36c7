import { type Client, createClient } from '@svc/client'
import { within } from '@svc/internal-clock'
import type { Command } from 'commander'
import { type Candidate, completionsAt, type WordKind } from '../completion/completions.ts'
import { SCRIPTS, type Shell } from '../completion/scripts.ts'
import { membersOf, repositoryIn } from '../models/models-here.ts'
import type { Session } from '../session.ts'

/** A person is waiting at the prompt: if there is no answer within this time, nothing is offered. */
const TIMEOUT_MS = 1500

/** `svc completion bash|zsh|fish` */
export function completion(session: Session, shell: Shell): void {
  session.terminal.stdout.text(SCRIPTS[shell])
}

/** `svc __complete -- WORD…`, called by the scripts. Failures are silent: the prompt is no place for messages. */
export async function complete(
  session: Session,
  words: readonly string[],
  _options: object,
  command: Command
): Promise<void> {
  const { candidates, sources, before, typed } = completionsAt(command.parent!, words)
  const at = words.indexOf('--socket')
  const socketPath = at < 0 ? session.client.socketPath : (words[at + 1] ?? session.client.socketPath)
  const found = await within(session.clock, TIMEOUT_MS, session.signal, async (signal) => {
    const client = createClient({ socketPath, signal })
    try {
      return await Promise.all(
        sources.map((source) => SOURCES[source](client, typed).catch((): readonly Candidate[] => []))
      )
    } finally {
      client.close()
    }
  })
  const begins = typed.toLowerCase()
  for (const { value, about } of [...candidates, ...found.flat()]) {
    if (!value.toLowerCase().startsWith(begins)) continue
    session.terminal.stdout.fields(before + value, about)
  }
  if (sources.includes('file')) session.terminal.stdout.line(':files')
}

const SOURCES: Readonly<Record<WordKind, (client: Client, typed: string) => Promise<readonly Candidate[]>>> = {
  ref: references,
  repo: async (client) =>
    (await client.models()).namespaces.map(({ ns, name, quants }) => ({
      value: `${ns}/${name}`,
      about: quants.join(', ')
    })),
  job: async (client) =>
    (await client.jobs()).map(({ id, kind, ref, state }) => ({ value: id, about: `${kind} ${ref}, ${state}` })),
  file: async () => []
}

/** Short references, or canonical ones if the word starts like one. Tags are offered only once one is being typed. */
async function references(client: Client, typed: string): Promise<readonly Candidate[]> {
  const inventory = await client.models()
  const scheme = typed.toLowerCase().startsWith('svc:') ? 'svc:///' : ''
  const plain = membersOf(inventory).map(({ ref }) => ref)
  const tagged = inventory.tags.flatMap(({ repo, tag }) =>
    typed.toLowerCase().startsWith(`${scheme}${repo}:${tag}+`)
      ? (repositoryIn(inventory, repo)?.quants ?? []).map((quant) => `${repo}:${tag}+${quant}`)
      : [`${repo}:${tag}+`]
  )
  return [...plain, ...(typed.includes(':') ? tagged : [])].map((ref) => ({ value: scheme + ref, about: '' }))
}

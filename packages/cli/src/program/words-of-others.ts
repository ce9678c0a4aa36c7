import type { Command } from 'commander'
import { type CliError, usage } from '../errors.ts'

/** Words of ollama, docker, hf and lms that mean a command of ours. */
const SAME: Readonly<Record<string, string>> = {
  delete: 'rm',
  download: 'pull',
  get: 'pull',
  images: 'ls',
  inspect: 'show',
  models: 'ls',
  remove: 'rm',
  rmi: 'rm',
  daemon: 'serve'
}

/** Words that mean something else here, or nothing: what to type, and why. */
const OTHERS: Readonly<Record<string, readonly [why: string, type: string]>> = {
  create: ['svc makes models from files', 'svc import local FILE --as ns/name'],
  build: ['svc makes models from files', 'svc import local FILE --as ns/name'],
  scan: [
    'what other tools have on this disk',
    'svc adopt --dry-run; what the store has: svc ls; its health: svc verify'
  ],
  'scan-cache': ['what other tools have on this disk', 'svc adopt --dry-run; what the store has: svc ls'],
  prune: [
    'svc frees what no model needs with gc',
    'svc gc --dry-run, then svc gc; svc gc --older-than 30d takes older versions, too'
  ],
  'delete-cache': ['models are removed by name', 'svc rm REF, then svc gc'],
  cache: ['the store is the cache', 'svc ls, svc rm REF, svc gc, svc verify'],
  auth: ['the token of the hub', 'svc login hf, svc logout hf'],
  whoami: ['svc login hf says whose token it is', 'svc login hf'],
  load: ['runtimes load models', 'svc run REF; for other programs: svc path REF'],
  unload: ['svc loads no models', 'svc ps shows which programs do; end the program'],
  chat: ['runtimes chat', 'svc run REF'],
  upload: ['svc shares models with other machines', 'svc share REF, svc push REF REGISTRY/NAME, svc publish REF DIR'],
  logs: ['the log of the daemon', 'svc status names it'],
  log: ['the log of the daemon', 'svc status names it'],
  update: ['newer commits of models', 'svc outdated, then svc upgrade'],
  uninstall: ['models are removed by name; the service with svc service remove', 'svc rm REF'],
  install: ['models are imported; the service is installed with svc service install', 'svc pull ORG/NAME:QUANT']
}

/** Gives our commands the names that other tools have for them; help does not list these. */
export function addNamesOfOthers(program: Command): void {
  for (const [word, ours] of Object.entries(SAME)) program.commands.find((each) => each.name() === ours)!.alias(word)
}

/** The answer to a command line of another tool, or to a model without a command; undefined for any other. */
export function answerToOthers(words: readonly string[]): CliError | undefined {
  const word = words.find((each) => !each.startsWith('-'))
  if (word === undefined) return undefined
  if (/^(?:https?:\/\/|hf\.co\/|huggingface\.co\/|ollama\.com\/)/i.test(word))
    return usage(`what to do with ${word}?`, `svc run ${word}, svc pull ${word} or svc show ${word}`)
  if (!Object.hasOwn(OTHERS, word)) return undefined
  const [why, type] = OTHERS[word]!
  return usage(`there is no "svc ${word}": ${why}`, type)
}

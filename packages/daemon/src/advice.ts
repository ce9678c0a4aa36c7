import type { ImportPlan } from '@svc/client/protocol'
import type { Advice, AdvicePlain, LibraryError } from '@svc/library/parts'
import type { PinnedCopy, SharedNote } from '@svc/sharing/parts'
import type { HubPlan } from '@svc/sources/hub/parts'
import type { HubConfig } from './config/config.ts'
import type { DeepReadonly } from './deep-readonly.ts'

/** With which commands and keys that is done here, as the end of the error's sentence. */
const PLAIN: Readonly<Record<AdvicePlain, string>> = {
  'free-space': ': free some space (svc rm and svc gc, svc evict), or move the store to another disk (svc move)',
  'evict-anyway': '; svc evict --force frees them anyway',
  'examine-records': ' (svc doctor)',
  unkeep: ' (svc unpin)',
  'remove-view': ' (svc view --rm)',
  'cancel-work': ' (svc cancel)',
  import: '; import it with /v1/import/local, /v1/import/hf, /v1/import/bt or /v1/import/catalog',
  'allow-peers':
    ', since the swarm client is off; set "[swarm] enabled" to true in the configuration, or import the model again',
  'choose-other-name': '; import this one under another name with --as',
  'make-store': '; the first start of svcd makes one',
  'make-store-there': ' To make a new one there: svcd --new',
  'accept-store': ' To use that one from now on: svcd --new',
  'expect-store': ' ([store] expect in the configuration)',
  'log-in': '; svc login hf writes a new one',
  'configure-catalog': ': set endpoint under [catalog] in the configuration and start the daemon again',
  'check-catalog': '; is [catalog] endpoint right, and is it reachable?',
  'trust-catalog': '; send "trustCatalog": true to accept its own SHA-256 list',
  'repair-models':
    '. Start the daemon, find the affected models with "svc fsck", fetch them again with "svc pull" or remove them ("svc rm", "svc gc"), then move again',
  'share-restricted': '; [swarm] seed_restricted = true in the configuration shares it with the swarm anyway',
  'turn-sharing-on': ': [swarm] seed = false in the configuration',
  adopt: '; svc adopt asks the hub whether everybody may have it'
}

export function advise(advice: Advice): string {
  switch (advice.to) {
    case 'agree-to-evict':
      return ' (svc evict; --evict or "evict": true agrees to it)'
    case 'continue-copy': {
      const { isRestore, from, root } = advice
      return `; to continue: ${isRestore ? `svc restore ${from} --root ${root}` : `svc move ${root}`}`
    }
    case 'repair-backup':
      return `. Repair the backup and run the same command again, or continue without these files: svc restore ${advice.from} --root ${advice.root} --incomplete, then svc fsck`
    case 'share-anyway':
      return `; svc private ${advice.ref ?? 'REF'} --off shares it`
    case 'fetch-companions':
      return `; fetch them with: svc companions ${advice.ref}`
    default:
      return PLAIN[advice.to]
  }
}

/** The message of a library's error for people who have `svc`, `svcd` and the API. */
export const advised = ({ message, advice }: Pick<LibraryError, 'message' | 'advice'>): string =>
  advice === undefined ? message : message + advise(advice)

/** The command that imports an artifact, with its companions, on another machine. */
export function howToFetch({ magnet, pin, companions, as, recognise }: PinnedCopy): string {
  const second = companions === undefined ? '' : ` --companions ${companions.digest}@${companions.infohash}`
  const named = as === undefined ? '' : ` --as ${as}`
  const asItIs = recognise === undefined ? '' : ` --${recognise}`
  return `svc import bt '${magnet}' --pin ${pin}${second}${asItIs}${named}`
}

const SHARED: Readonly<Record<SharedNote, string>> = {
  'no-network': 'this machine has no address that others can reach: it is not in a network',
  'loopback-only':
    'this daemon listens on this machine only; set [swarm] peer_addr = "0.0.0.0:0" (or webseed_addr) in the configuration, and start it again',
  'being-verified': 'it is being verified after the start, and is announced when that is done',
  'not-announced-yet':
    'it is not announced yet: svc share announces it now, the next start of the daemon does too, and [swarm] seed_on_import = true announces every import',
  incomplete: 'it is not complete here; svc pull fetches the rest'
}

/** Why an artifact is not announced, or what limits who can reach it. */
export const sharedNote = (heldBack: string | undefined, note: SharedNote | undefined): string | undefined =>
  heldBack ?? (note && SHARED[note])

/** The token of the hub that is in use, or one that there could be. */
export function hubTokenName({ tokenName, tokenFile }: HubConfig, token: string | undefined): string {
  if (token === undefined) return 'a token (svc login hf)'
  return tokenName !== undefined
    ? `${tokenName} in the daemon's environment`
    : `the token in ${tokenFile} (svc login hf writes it, svc logout hf removes it)`
}

/** A plan whose warnings say what would run code or is malformed. */
export function planWithMark({ mark, ...plan }: HubPlan): DeepReadonly<ImportPlan> {
  if (mark === undefined) return plan
  const { file, key, what, others } = mark
  const more = others === 0 ? '' : `, and ${others} more`
  const sentence = `${file}${key === undefined ? '' : ` (${key})`} ${what}${more}; svc inspect hf ${plan.repo} shows all`
  return { ...plan, warnings: [...plan.warnings, sentence] }
}

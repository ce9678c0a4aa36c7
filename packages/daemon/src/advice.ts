import type { Advice, AdvicePlain, LibraryError } from '@svc/library/parts'

/** With which commands and keys that is done here, as the end of the error's sentence. */
const PLAIN: Readonly<Record<AdvicePlain, string>> = {
  'free-space': ': free some space (svc rm and svc gc, svc evict), or move the store to another disk (svc move)',
  'evict-anyway': '; svc evict --force frees them anyway',
  'examine-records': ' (svc doctor)',
  unpin: ' (svc unpin)',
  'remove-view': ' (svc view --rm)',
  'cancel-work': ' (svc cancel)',
  import: '; import it with /v1/import/local, /v1/import/hf, /v1/import/bt or /v1/import/catalog',
  'allow-peers':
    ', since the swarm client is off; set "[swarm] enabled" to true in the configuration, or import the model again',
  'choose-other-name': '; import this one under another name with --as',
  'make-store': '; the first start of svcd makes one',
  'make-store-there': ' To make a new one there: svcd --new',
  'accept-store': ' To use that one from now on: svcd --new',
  'expect-store': ' ([store] expect in the configuration)'
}

function sentenceOf(advice: Advice): string {
  switch (advice.to) {
    case 'agree-to-evict':
      return ' (svc evict; --evict or "evict": true agrees to it)'
    case 'continue-copy': {
      const { isRestore, from, root } = advice
      return `; to continue: ${isRestore ? `svc restore ${from} --root ${root}` : `svc move ${root}`}`
    }
    default:
      return PLAIN[advice.to]
  }
}

/** The message of a library's error for people who have `svc`, `svcd` and the API. */
export const advised = ({ message, advice }: Pick<LibraryError, 'message' | 'advice'>): string =>
  advice === undefined ? message : message + sentenceOf(advice)

import { of } from './direct-mutations.ts'
import type { DirectTest, Mutation } from './mutated-copy.ts'

const TESTS = 'packages/daemon/test'
const PINS = (name: string): DirectTest => ({ file: 'packages/cli/test/provenance/hostile-pins.test.ts', name })
const RESTORED = (name: string): DirectTest => ({ file: `${TESTS}/commands/restored-claims.test.ts`, name })
const HINTS: DirectTest = { file: `${TESTS}/commands/restored-hints.test.ts` }

/** What strangers' documents say of bytes that are here: pinned manifests, and the records of a backup. */
export const DOCUMENTS: readonly Mutation[] = [
  ...of('internal/state/src/holdings.ts', [
    {
      what: 'documents: a pinned manifest may call bytes whatever it likes',
      find: `for (const file of files) if (file.size > 0) (this.#isHere(file) ? here : absent).push(file)`,
      replace: `for (const file of files) if (/^(?:weights|adapter)/.test(file.kind)) (this.#isHere(file) ? here : absent).push(file)`,
      caughtBy: PINS('what is here leaves as no')
    },
    {
      what: 'documents: an artifact that was never complete vouches for nothing',
      find: `(standing !== 'damaged' && standing.incomplete === true)) continue`,
      replace: `(standing !== 'damaged' && standing.manifestDigest === '')) continue`,
      caughtBy: PINS('by another import')
    }
  ]),
  ...of('sharing/src/fetches.ts', [
    {
      what: 'documents: what is all here has the merkle roots of its manifest',
      find: `else if (checksRoots) for (const file of torrent.files) await requireRoot(file, leafLayers, signal)`,
      replace: ``,
      caughtBy: PINS('all of whose files are here')
    }
  ]),
  ...of('sharing/src/seeding.ts', [
    {
      what: 'documents: a start seeds nothing that never was complete',
      find: `if (state.away === true || state.incomplete === true ||`,
      replace: `if (state.away === true ||`,
      caughtBy: PINS('a start seeds no pin')
    }
  ]),
  ...of('sharing/src/artifact-storage.ts', [
    {
      what: 'documents: a blob that is here is taken only with the merkle root of the manifest',
      find: `if (checksRoots) await requireRoot(file, leafLayers, signal)`,
      replace: ``,
      caughtBy: PINS('what is here leaves as no')
    }
  ]),
  ...of('internal/state/src/away.ts', [
    {
      what: 'documents: an eviction does not complete what was never complete',
      find: `return await artifacts.endAway(manifestDigest)`,
      replace: `return await artifacts.complete(manifestDigest)`,
      caughtBy: PINS('by another import')
    }
  ]),
  ...of('internal/state/src/provenance.ts', [
    {
      what: 'documents: whoever only names bytes does not end what a credential restricts',
      find: `if (before.access === 'restricted' && now.access !== 'restricted' && now.unproven !== undefined) return before`,
      replace: ``,
      caughtBy: { file: 'packages/internal/state/test/provenance.test.ts', name: 'credentials apply until' }
    },
    {
      what: 'documents: a restored record of absent bytes says nothing of who may have them',
      find: `...(lacking.length > 0 && facts.access !== 'restricted' && { access: 'unknown' }),`,
      replace: ``,
      caughtBy: RESTORED('not known to be public')
    },
    {
      what: 'documents: a restored record names the bytes that are absent',
      find: `const unproven = [...new Set([...(facts.unproven ?? []), ...lacking])].sort()`,
      replace: `const unproven = [...(facts.unproven ?? [])]`,
      caughtBy: RESTORED('that comes later')
    },
    {
      what: 'documents: a decision to share in a restored record of absent bytes does not count',
      find: `...(decision?.is === 'private' && { decision })`,
      replace: `...(decision !== undefined && { decision })`,
      caughtBy: RESTORED('a decision to share what')
    }
  ]),
  ...of('library/src/copying/restore-store.ts', [
    {
      what: 'documents: a restore reads records as those of a backup',
      find: `const restored = await records.of(path, bytes)`,
      replace: `const restored = records === undefined ? undefined : bytes`,
      caughtBy: RESTORED('that comes later')
    }
  ]),
  ...of('internal/state/src/restored-records.ts', [
    {
      what: 'documents: a restored record vouches only for bytes of the backup',
      find: `return lacking === undefined ? restored :`,
      replace: `return Date.now() > 0 ? restored :`,
      caughtBy: RESTORED('that comes later')
    },
    {
      what: 'documents: whose bytes a backup lacks is withheld',
      find: `provenance: restoredProvenance(provenance, lacking)`,
      replace: `provenance`,
      caughtBy: RESTORED('that comes later')
    },
    {
      what: 'documents: restored companions vouch only for bytes of the backup',
      find: `for (const each of documents) beside.push(...(await this.#lackingIn(each, COMPANIONS, filesOfCompanions)))`,
      replace: ``,
      caughtBy: RESTORED('that comes later')
    },
    {
      what: 'documents: notes on absent bytes are not restored',
      find: `return this.#has(digest) ? restored : undefined`,
      replace: `return restored`,
      caughtBy: RESTORED('notes on where bytes came from')
    },
    {
      what: 'documents: addresses in a restored record are strangers’',
      find: `const restored = restoredRecord(bytes)`,
      replace: `const restored = bytes`,
      caughtBy: HINTS
    }
  ])
]

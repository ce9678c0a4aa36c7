import { of } from './direct-mutations.ts'
import type { Mutation } from './mutated-copy.ts'

const PINNED_TEST = { file: 'packages/daemon/test/swarm/pinned-companions.slow.ts' }
const OWN_TEST = { file: 'packages/daemon/test/import/own-companions.test.ts' }

/** What of a folder's small files leaves with its model. */
export const COMPANIONS: readonly Mutation[] = [
  ...of('daemon/src/library/given-companions.ts', [
    {
      what: 'companions: what an import noted counts, wherever the artifact came from later',
      find: `file.own ?? (`,
      replace: `(`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: without a note, names of a local folder are judged',
      find: `(source.kind === 'local' && !isForLoaders(file.path))`,
      replace: `(source.kind !== source.kind && !isForLoaders(file.path))`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: the owner’s own are not given',
      find: `const given = files.filter((file) => !isOwn(file, origin))`,
      replace: `const given = files`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: names of what stayed are not told',
      find: `omitted.filter((file) => !isOwnOmission(file, origin))`,
      replace: `omitted`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: names of hidden files and secrets are never told',
      find: `file.reason === 'hidden' || file.reason === 'secret' || (`,
      replace: `(`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('classify/src/loaders.ts', [
    {
      what: 'companions: a secret’s name is no loader’s',
      find: `pattern.test(name)) && !isSecretByName(path)`,
      replace: `pattern.test(name))`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('daemon/src/import/companions.ts', [
    {
      what: 'companions: secrets do not come in',
      find: `&& isSecretByName(name)) omit('secret')`,
      replace: `&& Date.now() < 0) omit('secret')`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: an import notes which files are the owner’s own',
      find: `listed.map((file) => markedOwn(file, { source: origin }, givesAll))`,
      replace: `listed`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: an import notes which names are the owner’s own',
      find: `file.reason === 'artifact' ? file : markedOwn(file, { source: origin }, givesAll)`,
      replace: `file`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('daemon/src/library/artifacts.ts', [
    {
      what: 'companions: an import that opens an artifact does not open those that came with a credential',
      find: `const isOpened = before !== undefined && !verdictOf(before, 'export').given && verdictOf(next, 'export').given`,
      replace: `const isOpened = false as boolean`,
      caughtBy: { file: 'packages/daemon/test/library/artifacts.test.ts' }
    }
  ]),
  ...of('daemon/src/library/companions.ts', [
    {
      what: 'companions: views and openers hear which are the owner’s own',
      find: `new Set(ownCompanions(document, state).map(({ path }) => path))`,
      replace: `new Set<string>()`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('daemon/src/api/routes/models.ts', [
    {
      what: 'companions: the answer to why counts what leaves',
      find: `givenCompanions(document, state)?.document.files.length ?? 0`,
      replace: `document.files.length`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: the answer to why names what stays',
      find: `own: ownCompanions(document, state).map(({ path }) => path)`,
      replace: `own: []`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('cli/src/models/packing.ts', [
    {
      what: 'companions: what is exported or pushed has none of the owner’s own',
      find: `view.files.filter(({ own }) => own !== true)`,
      replace: `view.files`,
      caughtBy: { file: 'packages/cli/test/companions.test.ts' }
    }
  ]),
  ...of('daemon/src/library/artifacts.ts', [
    {
      what: 'companions: what it took to have them counts',
      find: `provenance: mergedProvenance(before.provenance, facts, { isPinned: true, wasComplete: false }),`,
      replace: `provenance: before.provenance,`,
      caughtBy: {
        file: 'packages/daemon/test/sources/hub/companions-alone.slow.ts',
        name: 'companions fetched with a token'
      }
    }
  ]),
  ...of('daemon/src/swarm/artifact-torrents.ts', [
    {
      what: 'companions: their torrent has none of the owner’s own',
      find: `document && givenCompanions(document, state)`,
      replace: `document && givenCompanions({ ...document, files: document.files.map((f) => ({ ...f, own: false })) }, state)`,
      caughtBy: PINNED_TEST
    }
  ]),
  ...of('daemon/src/swarm/companions-swarm.ts', [
    {
      what: 'companions: what may be given is announced',
      find: `await torrents.givenCompanions(digest, state)`,
      replace: `undefined`,
      caughtBy: PINNED_TEST
    }
  ]),
  ...of('daemon/src/swarm/pinned-companions.ts', [
    {
      what: 'companions: those of what is withheld are asked for quietly',
      find: `state === undefined || isWithheld(state)`,
      replace: `state === undefined`,
      caughtBy: PINNED_TEST
    }
  ]),
  ...of('daemon/src/library/views.ts', [
    {
      what: 'companions: what mirrors show has none of the owner’s own',
      find: `isLent ? kept.files.filter(({ path }) => !own.has(path)) : kept.files`,
      replace: `kept.files`,
      caughtBy: { file: 'packages/daemon/test/mirror/own-companions.test.ts' }
    }
  ])
]

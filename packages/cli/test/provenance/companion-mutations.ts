import { of } from './direct-mutations.ts'
import type { Mutation } from './mutated-copy.ts'

const PINNED_TEST = { file: 'packages/daemon/test/swarm/pinned-companions.slow.ts' }
const OWN_TEST = { file: 'packages/daemon/test/import/own-companions.test.ts' }

/** What of a folder's small files leaves with its model. */
export const COMPANIONS: readonly Mutation[] = [
  ...of('internal/state/src/artifact-import.ts', [
    {
      what: 'companions: an import of unknown access brings some beside a model that others may have',
      find: `if (!isPinned && bringsDoubt(standing, now))`,
      replace: `if (isPinned && bringsDoubt(standing, now))`,
      caughtBy: { file: 'packages/cli/test/adopt-sharing.test.ts', name: 'brings beside a model' }
    }
  ]),
  ...of('internal/state/src/given-companions.ts', [
    {
      what: 'companions: the note of an import counts, whatever the source of a later import',
      find: `file.own ?? (`,
      replace: `(`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: without a note, names decide about files of a local folder',
      find: `(source.kind === 'local' && !isForLoaders(file.path))`,
      replace: `(source.kind !== source.kind && !isForLoaders(file.path))`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: the owner’s own files do not leave',
      find: `const given = files.filter((file) => !isOwn(file, origin))`,
      replace: `const given = files`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: names of the owner’s omitted files are not shown',
      find: `omitted.filter((file) => !isOwnOmission(file, origin))`,
      replace: `omitted`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: names of hidden files and secrets are never shown',
      find: `file.reason === 'hidden' || file.reason === 'secret' || (`,
      replace: `(`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('classify/src/loaders.ts', [
    {
      what: 'companions: a file with the name of a secret is not for loaders',
      find: `pattern.test(name)) && !isSecretByName(path)`,
      replace: `pattern.test(name))`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('library/src/import/companions.ts', [
    {
      what: 'companions: an import omits secrets',
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
      what: 'companions: an import notes which omitted files are the owner’s own',
      find: `file.reason === 'artifact' ? file : markedOwn(file, { source: origin }, givesAll)`,
      replace: `file`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('internal/state/src/artifact-import.ts', [
    {
      what: 'companions: an import that makes an artifact public does not publish companions that came with a credential',
      find: `const isOpened = before !== undefined && !verdictOf(before, 'export').given && verdictOf(next, 'export').given`,
      replace: `const isOpened = false as boolean`,
      caughtBy: { file: 'packages/internal/state/test/artifacts.test.ts' }
    }
  ]),
  ...of('internal/state/src/companions.ts', [
    {
      what: 'companions: views and open files know which companions are the owner’s own',
      find: `new Set(ownCompanions(document, state).map(({ path }) => path))`,
      replace: `new Set<string>()`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('internal/state/src/view-maker.ts', [
    {
      what: 'companions: mirrors are given no folder with the owner’s own files',
      find: `[...missing, ...ownCompanions(document, state)]`,
      replace: `[...missing]`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('library/src/import/plan.ts', [
    {
      what: 'the text of a licence that is named like a secret is not kept',
      find: `const licences = recognition.licences.filter(({ name }) => !isSecretByName(name))`,
      replace: `const { licences } = recognition`,
      caughtBy: OWN_TEST
    },
    {
      what: 'files that are taken as they are come without those named like secrets',
      find: `isHidden(name) || isSecretByName(name)`,
      replace: `isHidden(name)`,
      caughtBy: { file: 'packages/cli/test/opaque.test.ts', name: 'a folder comes without what is hidden or secret' }
    }
  ]),
  ...of('daemon/src/api/routes/models.ts', [
    {
      what: 'companions: `why` counts the files that may leave',
      find: `givenCompanions(document, state)?.document.files.length ?? 0`,
      replace: `document.files.length`,
      caughtBy: OWN_TEST
    },
    {
      what: 'companions: `why` names the files that stay',
      find: `own: ownCompanions(document, state).map(({ path }) => path)`,
      replace: `own: []`,
      caughtBy: OWN_TEST
    }
  ]),
  ...of('cli/src/models/packing.ts', [
    {
      what: 'companions: an export or push contains none of the owner’s own files',
      find: `view.files.filter(({ own }) => own !== true)`,
      replace: `view.files`,
      caughtBy: { file: 'packages/cli/test/companions.test.ts' }
    }
  ]),
  ...of('internal/state/src/artifacts.ts', [
    {
      what: 'companions: the credential that fetched companions restricts their artifact',
      find: `provenance: mergedProvenance(before.provenance, facts, { isPinned: true, wasComplete: false }),`,
      replace: `provenance: before.provenance,`,
      caughtBy: {
        file: 'packages/daemon/test/sources/hub/companions-alone.slow.ts',
        name: 'companions fetched with a token'
      }
    }
  ]),
  ...of('sharing/src/artifact-torrents.ts', [
    {
      what: 'companions: their torrent contains none of the owner’s own files',
      find: `document && givenCompanions(document, state)`,
      replace: `document && givenCompanions({ ...document, files: document.files.map((f) => ({ ...f, own: false })) }, state)`,
      caughtBy: PINNED_TEST
    }
  ]),
  ...of('sharing/src/companions-swarm.ts', [
    {
      what: 'companions: the companions that may leave are announced',
      find: `await torrents.givenCompanions(digest, state)`,
      replace: `undefined`,
      caughtBy: PINNED_TEST
    }
  ]),
  ...of('sharing/src/pinned-companions.ts', [
    {
      what: 'companions: those of a withheld model are fetched without announcing',
      find: `state === undefined || isWithheld(state)`,
      replace: `state === undefined`,
      caughtBy: PINNED_TEST
    }
  ]),
  ...of('internal/state/src/view-maker.ts', [
    {
      what: 'companions: mirrors show none of the owner’s own files',
      find: `[...missing, ...ownCompanions(document, state)]`,
      replace: `missing`,
      caughtBy: { file: 'packages/daemon/test/mirror/own-companions.test.ts' }
    }
  ])
]

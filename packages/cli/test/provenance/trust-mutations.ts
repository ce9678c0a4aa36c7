// Each place of the product that asks whose signature a model needs, without it.
import { of } from './direct-mutations.ts'
import type { DirectTest, Mutation } from './mutated-copy.ts'

const TESTS = 'packages/daemon/test'
const IMPORT = (name: string): DirectTest => ({ file: `${TESTS}/import/trust.test.ts`, name })
const RULES = (name: string): DirectTest => ({ file: `${TESTS}/library/trust.test.ts`, name })
const HUB = (name: string): DirectTest => ({ file: `${TESTS}/sources/hub/trust.test.ts`, name })
const PINNED = (name: string): DirectTest => ({ file: `${TESTS}/swarm/trust.test.ts`, name })
const MIRRORS = (name: string): DirectTest => ({ file: `${TESTS}/mirror/signed-models.slow.ts`, name })
const YOUNGER = MIRRORS('removes unsigned models from the mirrors')

export const TRUST: readonly Mutation[] = [
  ...of('library/src/import/importer.ts', [
    {
      what: 'trust: an import asks for the rule',
      find: `ruledImport(repo, await planSelected(source, selection, offload, signal), trust)`,
      replace: `{ ...(await planSelected(source, selection, offload, signal)), rule: undefined }`,
      caughtBy: IMPORT('refused with the names')
    },
    {
      what: 'trust: companions that come later ask for the rule',
      find: `ruledImport(repo, await planListing(listed, offload), trust)`,
      replace: `{ ...(await planListing(listed, offload)), rule: undefined }`,
      caughtBy: HUB('does not cover are refused')
    },
    {
      what: 'trust: companions that come later are checked',
      find: `const doubts = await this.#doubts(plan, brought, report)
    await writeDocument(`,
      replace: `const doubts: string[] = []
    await writeDocument(`,
      caughtBy: HUB('does not cover are refused')
    },
    {
      what: 'trust: an import is checked',
      find: `const doubts = await this.#doubts(plan, brought, report)
    const sealed`,
      replace: `const doubts: string[] = []
    const sealed`,
      caughtBy: IMPORT('refused with the names')
    }
  ]),
  ...of('library/src/import/ruled-import.ts', [
    {
      what: 'trust: a rule also matches the name of a model’s source',
      find: `trust.ruleFor({ typed: [typed ?? formatRepoId(repo)], claimed })`,
      replace: `trust.ruleFor({ typed: [typed ?? formatRepoId(repo)], claimed: claimed.slice(3) })`,
      caughtBy: HUB('refused, whatever the name here')
    },
    {
      what: 'trust: a rule also matches the name that the hub was asked for',
      find: `const claimed = [answered, asked, annotations`,
      replace: `const claimed = [answered, annotations`,
      caughtBy: HUB('the name in the answer of the hub relaxes no rule')
    },
    {
      what: 'trust: an import for a mirror’s client brings the signature',
      find: `...withSignature(plan, rule), rule`,
      replace: `...plan, rule`,
      caughtBy: HUB('a client of the mirror gets every file')
    },
    {
      what: 'trust: an import for a mirror’s client keeps the signature',
      find: ` || rule?.mode === 'require'`,
      replace: ``,
      caughtBy: MIRRORS('client caused is shown after a restart')
    }
  ]),
  ...of('internal/state/src/trust.ts', [
    {
      what: 'trust: the strictest of several rules applies',
      find: `const mode = brought.some((rule) => rule.mode === 'require') ? 'require' : 'warn'`,
      replace: `const mode = brought[0]?.mode ?? 'warn'`,
      caughtBy: RULES('a claimed name adds what its rule requires')
    },
    {
      what: 'trust: a model without a typed name is one for the rule for all',
      find: `typed.length > 0 ? names : [[], ...names]`,
      replace: `names`,
      caughtBy: RULES('does not relax one that requires')
    },
    {
      what: 'trust: a source’s list of omissions excuses no file that it names',
      find: `isLeftOut: leftOutTest({`,
      replace: `isLeftOut: (path) => model.omitted.some((file) => file.path === path) || leftOutTest({`,
      caughtBy: RULES('others list as omitted')
    },
    {
      what: 'trust: files that are already in the store are checked',
      find: `await this.complaintOfStored(rule, ...stored)`,
      replace: `undefined`,
      caughtBy: PINNED('refused, and nothing of it')
    }
  ]),
  ...of('sharing/src/pinned-import.ts', [
    {
      what: 'trust: a pinned import asks for the rule',
      find: `const rule = ruleFor(this.#deps.trust, this.#request.repo, source.torrent.manifest.document)`,
      replace: `const rule = undefined as TrustRule | undefined`,
      caughtBy: PINNED('refused, and nothing of it')
    },
    {
      what: 'trust: an unsigned model’s weights are not fetched',
      find: `await trust.requireSigned(rule, brought.document.files, { store, clock })`,
      replace: ``,
      caughtBy: PINNED('no weights are fetched')
    },
    {
      what: 'trust: a pinned import is checked before it is visible',
      find: `await checkBrought(rule, torrent.manifest.document, brought, this.#deps, this.#work)`,
      replace: ``,
      caughtBy: PINNED('refused, and nothing of it')
    }
  ]),
  ...of('sharing/src/pinned-companions.ts', [
    {
      what: 'trust: companions of a pinned import ask for the rule',
      find: `const rule = manifest && ruleFor(trust, repo, manifest)`,
      replace: `const rule = undefined as TrustRule | undefined`,
      caughtBy: PINNED('warn lets a changed model in')
    },
    {
      what: 'trust: companions of a pinned import are checked',
      find: `isToCheck ? await checkBrought(rule, manifest!, { document }, deps, job) : []`,
      replace: `isToCheck ? [] : []`,
      caughtBy: PINNED('warn lets a changed model in')
    },
    {
      what: 'trust: a rule also matches the source of a pinned model',
      find: `claimed: [manifest.annotations['svc.hf.repo']]`,
      replace: `claimed: []`,
      caughtBy: PINNED('without a local name')
    },
    {
      what: 'trust: a pinned import is checked against the files in the store',
      find: `trust.checkStored(rule, manifest, document, { store, clock, onReading: (message) => report({ message }) })`,
      replace: `Promise.resolve([])`,
      caughtBy: PINNED('refused, and nothing of it')
    }
  ]),
  ...of('catalog/src/catalog.ts', [
    {
      what: 'trust: a pull does not upload a model that needs a signature',
      find: `const rule = trust.ruleFor({ typed: [formatRepoId(as)], claimed: [entry.repo, anchor.repo] })`,
      replace: `const rule = undefined as ReturnType<typeof trust.ruleFor>`,
      caughtBy: {
        file: `${TESTS}/sources/catalog/withheld.slow.ts`,
        name: 'needs a signature'
      }
    }
  ]),
  ...of('sources/src/hub/signed-listing.ts', [
    {
      what: 'trust: a request of a mirror’s client asks for the rule',
      find: `const rule = trust.ruleFor({ typed: [asked], claimed: [listed.repoId] })`,
      replace: `const rule = undefined as ReturnType<typeof trust.ruleFor>`,
      caughtBy: HUB('no client of the mirror gets the file')
    },
    {
      what: 'trust: a listed digest must be the signed one',
      find: `sha256 === undefined ? signed.names(path) : signed.covers(path, sha256)`,
      replace: `sha256 === undefined ? signed.names(path) : true`,
      caughtBy: HUB('no client of the mirror gets the file')
    },
    {
      what: 'trust: a repository that an import would refuse gives no files',
      find: `isBrought(file) && !mayBeSigned(signed, file)`,
      replace: `isBrought(file) && Date.now() < 0`,
      caughtBy: HUB('no client of the mirror gets the file')
    }
  ]),
  ...of('sources/src/hub/upstream.ts', [
    {
      what: 'trust: a lookup reads the repository’s signature',
      find: `await signedListing(asked, { repoId, files: listed, leftOut, more }, this.#deps, read)`,
      replace: `undefined as SignedListing | undefined`,
      caughtBy: HUB('no client of the mirror gets the file')
    },
    {
      what: 'trust: a mirror’s client sees only signed files',
      find: `signed === undefined || mayBeSigned(signed, listed[at]!)`,
      replace: `signed === undefined || listed[at] !== undefined`,
      caughtBy: HUB('an unsigned file that no import brings')
    },
    {
      what: 'trust: a small file must match its signed digest',
      find: `this.#require(repo).signed?.covers(name, digest) === false`,
      replace: `Date.now() < 0`,
      caughtBy: HUB('no client of the mirror gets the file')
    },
    {
      what: 'trust: bytes of a refused import are not served',
      find: `this.#require(repo).signed === undefined || this.#checked.has(commitKey(repo))`,
      replace: `this.#require(repo).commit !== ''`,
      caughtBy: HUB('no client of the mirror gets the file')
    }
  ]),
  ...of('mirror/src/served-models.ts', [
    {
      what: 'trust: the hub’s mirror shows only models with a valid signature',
      find: ` &&
        (await this.#isSigned(state))`,
      replace: ``,
      caughtBy: YOUNGER
    },
    {
      what: 'trust: a pending model is shown only after its check',
      find: `if ((await signed.ruleFor(state, name)) !== undefined) return false`,
      replace: ``,
      caughtBy: PINNED('began before the rule')
    },
    {
      what: 'trust: mirrors check stored models',
      find: `(await this.#deps.signed.complaint(state, name)) === undefined`,
      replace: `state !== undefined && name !== ''`,
      caughtBy: YOUNGER
    },
    {
      what: 'trust: mirrors that look models up by name show only signed ones',
      find: `(await this.#isSigned(state, name)) ? state : undefined`,
      replace: `state`,
      caughtBy: YOUNGER
    }
  ]),
  ...of('internal/state/src/naming.ts', [
    {
      what: 'trust: a second name asks for its rule',
      find: `state && (await deps.signed.complaint(state, formatRepoId(to), formatRepoId(from)))`,
      replace: `state && undefined`,
      caughtBy: { file: 'packages/cli/test/rename.test.ts', name: 'a rule that requires a signature' }
    }
  ]),
  ...of('internal/state/src/signed-models.ts', [
    {
      what: 'trust: a rule also matches the source of a stored model',
      find: `trust.ruleFor({ typed, claimed: [source.repo, source.asked, upstream] })`,
      replace: `trust.ruleFor({ typed, claimed: [] })`,
      caughtBy: HUB('a younger rule applies')
    },
    {
      what: 'trust: a rule also matches the name that the hub was asked for, of a stored model',
      find: `claimed: [source.repo, source.asked, upstream]`,
      replace: `claimed: [source.repo, upstream]`,
      caughtBy: HUB('a younger rule applies')
    },
    {
      what: 'trust: a stored model asks for the rule',
      find: `const rule = await this.ruleFor(state, name)`,
      replace: `const rule = undefined as TrustRule | undefined`,
      caughtBy: YOUNGER
    },
    {
      what: 'trust: a stored model is compared with its signature',
      find: `await trust.complaintOfStored(rule, manifest, beside,`,
      replace: `await ((..._: unknown[]) => undefined as string | undefined)(rule, manifest, beside,`,
      caughtBy: YOUNGER
    }
  ]),
  ...of('daemon/src/api/routes/models.ts', [
    {
      what: 'trust: `why` names the models that mirrors hide for want of a signature',
      find: `isHere ? await signed.complaint(state, formatRepoId(resolved)) : undefined`,
      replace: `isHere ? undefined : undefined`,
      caughtBy: YOUNGER
    }
  ])
]

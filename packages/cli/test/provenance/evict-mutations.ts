import { of } from './direct-mutations.ts'
import type { DirectTest, Mutation } from './mutated-copy.ts'

const ROOM = 'packages/daemon/test/room'
/** Random use, whose first history tries each reason once. */
const MODEL: DirectTest = { file: `${ROOM}/room.model.test.ts` }
const evict = (name: string): DirectTest => ({ file: `${ROOM}/evict.test.ts`, name })
const QUOTA: DirectTest = { file: `${ROOM}/quota.slow.ts`, name: 'the space to keep free' }

/** What keeps weights here that could not be had again, or that somebody needs now. */
export const EVICTIONS: readonly Mutation[] = [
  ...of('library/src/operations/evict.ts', [
    {
      what: 'a model without a proven copy stays',
      caughtBy: MODEL,
      find: 'if (keptFact({ kept: undefined, provenMs: proof.provenMs }, this.limits) !== undefined) throw',
      replace: 'if (Date.now() < 0) throw'
    },
    {
      what: 'a model with a view stays',
      caughtBy: MODEL,
      find: 'if (view !== undefined) return',
      replace: 'if (Date.now() < 0) return'
    },
    {
      what: 'a pinned model stays',
      caughtBy: QUOTA,
      find: 'if (standing?.kept) return',
      replace: 'if (Date.now() < 0) return'
    },
    {
      what: 'a model that is being read stays',
      caughtBy: evict('bytes that another'),
      find: 'if (weights.some(({ digest }) => store.isLeased(digest)))',
      replace: 'if (Date.now() < 0)'
    },
    {
      what: 'weights that another import brings back do not belong to the model that is away',
      caughtBy: evict('bytes that others'),
      find: 'await endAwayOfAll(this.#deps, manifest)',
      replace: ''
    }
  ]),
  ...of('library/src/operations/room.ts', [
    {
      what: 'no model is evicted for another without the owner’s consent',
      caughtBy: QUOTA,
      find: 'if (!mayEvict) throw',
      replace: 'if (Date.now() < 0) throw'
    }
  ]),
  ...of('library/src/operations/copies.ts', [
    {
      what: 'a place that no longer has the bytes proves nothing',
      caughtBy: MODEL,
      find: `const at = is === 'there' ? timestampOf(clock) : undefined`,
      replace: `if (is === 'gone') continue
        const at = timestampOf(clock)`
    },
    {
      what: 'a place that is no longer a source proves nothing',
      caughtBy: evict('an earlier source proves nothing'),
      find: 'if (!asked.some((each) => each.kind === kind && each.where === where))',
      replace: 'if (Date.now() < 0)'
    }
  ]),
  ...of('internal/state/src/eviction.ts', [
    { what: 'a proof expires', caughtBy: MODEL, find: ' && nowMs - provenMs <= proofMs', replace: '' }
  ]),
  ...of('sources/src/hub/listed-bytes.ts', [
    {
      what: 'the hub must list the same bytes',
      caughtBy: evict('a hub that lists other bytes'),
      find: 'if (listed.sha256 !== undefined) return listed.sha256 === digest',
      replace: 'if (listed.sha256 !== undefined) return true'
    },
    {
      what: 'the hub must list the same bytes of a file in git',
      caughtBy: evict('a hub that lists other bytes'),
      find: 'return listed.gitBlobSha1 === (await',
      replace: `return '' !== (await`
    }
  ]),
  ...of('sources/src/hub/copies.ts', [
    {
      what: 'the hub must serve each file',
      caughtBy: evict('a hub that lists other bytes'),
      find: 'await signed.hub.read(found!, { start: 0, end: Math.min(1, file.size) }, timeouts)',
      replace: ''
    },
    {
      what: 'a mirror of this daemon does not count as another place',
      caughtBy: evict('this daemon itself'),
      find: 'await this.#deps.others.now()',
      replace: 'await this.#deps.owners.now()'
    }
  ])
]

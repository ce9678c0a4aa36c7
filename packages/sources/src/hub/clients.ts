import { createHub, type Hub, type HubOptions } from '@svc/hub'
import { TRANSFER_NICE } from '@svc/internal-workers'
import { HubDocumentReader } from './hub-documents.ts'
import { type HubAccess, OwnersHub, type OwnersHubOptions } from './owners-hub.ts'
import { STRANGER_HUB, StrangerListings } from './stranger-listing.ts'

/** Which hub is asked, and how. */
export interface HubClientsOptions extends Pick<OwnersHubOptions, 'nameOf' | 'limits' | 'retry' | 'downloads'> {
  readonly access: HubAccess
  readonly userAgent: string
  /** What tells requests of this program to listeners of its own, which are no other place. */
  readonly mark: string
}

/** The clients of one hub. Each is one object for all work of its kind, so that limits apply to all its requests together. */
export class HubClients {
  /** With the owner's token. */
  readonly owners: OwnersHub
  /** The same, for requests that this program's own listeners do not answer. */
  readonly others: OwnersHub
  /** Without a token, as the public sees the hub. A client waits for the answer; without one, nothing leaves. */
  readonly anonymous: Hub
  /** Without a token, and on no connection that the owner's transfers would wait for (spec add.40). */
  readonly strangers: Hub
  readonly listings: StrangerListings
  readonly #documents = new HubDocumentReader()

  /** @throws HubError when the endpoint or the given token is invalid */
  constructor({ access, userAgent, mark, nameOf, ...more }: HubClientsOptions) {
    const { endpoint } = access
    const readDocument = this.#documents.parse
    const common = { readDocument, threadNice: TRANSFER_NICE, userAgent, ...(endpoint !== undefined && { endpoint }) }
    const owners = { ...more, ...(nameOf && { nameOf }), readDocument }
    this.owners = new OwnersHub(access, { ...owners, userAgent, threadNice: TRANSFER_NICE })
    this.others = new OwnersHub(access, { ...owners, userAgent: `${userAgent} (${mark})` })
    this.strangers = createHub({ ...common, ...STRANGER_HUB, ...more })
    this.anonymous = createHub({ ...common, ...more, retry: { ...more.retry, tries: 2 } satisfies HubOptions['retry'] })
    this.listings = new StrangerListings({ ...(endpoint !== undefined && { endpoint }), userAgent, ...STRANGER_HUB })
  }

  async close(): Promise<void> {
    const { owners, others, anonymous, strangers, listings } = this
    await Promise.all([owners, others, anonymous, strangers, listings, this.#documents].map((each) => each.close()))
  }
}

/** What of a source is imported, and what it may change here. */
export interface ImportChoice {
  /** Which names GGUF files get; default: those at the source. */
  readonly names?: 'upstream' | 'normalized' | undefined
  /** Only these, without regard to case; default: all. */
  readonly quants?: readonly string[] | undefined
  /** Globs: only these weights and what stands beside them. */
  readonly files?: readonly string[] | undefined
  /** What comes beside the weights; default: all. */
  readonly aux?: 'all' | 'none' | readonly string[] | undefined
  /** Every file as it is, as one artifact of the quant `raw`. */
  readonly recognise?: 'opaque' | undefined
  /** With `recognise`: pickles as well, which can run code when they are loaded. */
  readonly allowPickle?: boolean | undefined
  /** Neither announced nor shared. */
  readonly private?: boolean | undefined
  /** False: a quant of that name stays, unless it came from the same repository of the hub. */
  readonly replace?: boolean | undefined
  /** What the name stood for gets the tag `before-<date>`. */
  readonly keepBefore?: boolean | undefined
  /** If space is short, models that can be fetched again are evicted. */
  readonly evict?: boolean | undefined
  /** Weights that no runtime can load: a warning, or the end of the import. */
  readonly malformed?: 'keep' | 'refuse' | undefined
}

/** {@link ImportChoice} for files of this machine. */
export type LocalChoice = Omit<ImportChoice, 'keepBefore'>

/** {@link ImportChoice} for OCI artifacts. */
export type OciChoice = Omit<ImportChoice, 'aux' | 'keepBefore'>

/** {@link ImportChoice} for catalogs. */
export type CatalogChoice = Omit<ImportChoice, 'recognise' | 'allowPickle' | 'keepBefore'>

/** A source that is reached over the network. */
interface RemoteSource {
  /** Options by which this process would reach it, by name. A daemon reaches it as its own configuration says, and refuses them. */
  readonly inProcessOnly?: readonly string[] | undefined
}

/** Files and folders of this machine, by their absolute paths. */
export interface LocalFiles {
  readonly kind: 'local'
  readonly paths: readonly string[]
  readonly choice?: LocalChoice | undefined
}

/** A repository of the model hub. */
export interface HubRepository extends RemoteSource {
  readonly kind: 'hub'
  /** `org/name`, or `name` for one without an owner. */
  readonly repo: string
  /** A branch, tag or commit; default: the default branch. */
  readonly revision?: string | undefined
  readonly choice?: ImportChoice | undefined
}

/** A model in a registry. */
export interface RegistryImage {
  readonly kind: 'oci'
  /** `registry/name:tag` or `registry/name@sha256:<hex>` */
  readonly image: string
  /** Without TLS, as always with registries on this machine. */
  readonly plainHttp?: boolean | undefined
  readonly choice?: OciChoice | undefined
}

/** A model in an OCI image layout, a folder or a tar archive. */
export interface ImageLayout {
  readonly kind: 'oci-layout'
  /** Absolute. */
  readonly path: string
  /** By tag or digest; not needed if there is only one. */
  readonly manifest?: string | undefined
  readonly choice?: OciChoice | undefined
}

/** A model of a catalog of torrents. */
export interface CatalogModel extends RemoteSource {
  readonly kind: 'catalog'
  /** `owner/name`, as the catalog lists it. */
  readonly repo: string
  /** Which GGUF of the repository. */
  readonly quant?: string | undefined
  /** Accepts the catalog's own list of hashes for a model that is gone from the hub. */
  readonly trustCatalog?: boolean | undefined
  /** `host:port` of peers. */
  readonly peers?: readonly string[] | undefined
  readonly choice?: CatalogChoice | undefined
}

/**
 * Where models are, as data. A daemon takes any description; a library in this process takes those that `localFiles`, `hubSource`,
 * `ociImage`, `ociLayout` and `catalogModel` make, which bring along how it is done.
 */
export type ModelSource = LocalFiles | HubRepository | RegistryImage | ImageLayout | CatalogModel

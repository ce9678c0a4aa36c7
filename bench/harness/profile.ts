const MIB = 1 << 20

/** The sizes and counts of all rows. */
export interface Profile {
  /** Number of interleaved rounds; rows report medians. */
  readonly runs: number
  /** Rounds for measurements of less than a second. */
  readonly shortRuns: number
  readonly largeBytes: number
  readonly memoryBytes: number
  /** Files of the import whose memory is measured. */
  readonly memoryFiles: number
  readonly smallFiles: number
  readonly ggufFiles: number
  readonly ggufBytes: number
  readonly verifyBytes: number
  readonly blobBytes: number
  readonly loadSeconds: number
  readonly artifacts: number
  /** Models that standing views show. */
  readonly standingModels: number
  readonly repositories: number
  readonly hubBytes: number
  readonly seedBytes: number
  readonly streamBytes: number
  /** Number of repositories for measuring the start of a very large store. */
  readonly manyArtifacts: number
  readonly growthNames: readonly number[]
  readonly growthMib: readonly number[]
  readonly growthFiles: readonly number[]
  readonly growthArtifacts: readonly number[]
  readonly growthPeers: readonly number[]
  readonly growthTorrents: readonly number[]
}

export const PROFILES = {
  full: {
    runs: 5,
    shortRuns: 11,
    largeBytes: 2048 * MIB,
    memoryBytes: 4096 * MIB,
    memoryFiles: 10_000,
    smallFiles: 1_000,
    ggufFiles: 20,
    ggufBytes: 200_000_000,
    verifyBytes: 2048 * MIB,
    blobBytes: 1024 * MIB,
    loadSeconds: 3,
    artifacts: 1_000,
    standingModels: 200,
    repositories: 10_000,
    hubBytes: 1024 * MIB,
    seedBytes: 1024 * MIB,
    streamBytes: 1024 * MIB,
    manyArtifacts: 10_000,
    growthNames: [10, 100, 1_000, 10_000, 30_000],
    growthMib: [64, 256, 1_024, 4_096],
    growthFiles: [10, 100, 1_000, 5_000],
    growthArtifacts: [100, 1_000, 5_000],
    growthPeers: [1, 4, 16, 64],
    growthTorrents: [1, 10, 100, 1_000]
  },
  quick: {
    runs: 3,
    shortRuns: 5,
    largeBytes: 512 * MIB,
    memoryBytes: 1024 * MIB,
    memoryFiles: 2_000,
    smallFiles: 1_000,
    ggufFiles: 5,
    ggufBytes: 64_000_000,
    verifyBytes: 512 * MIB,
    blobBytes: 256 * MIB,
    loadSeconds: 1,
    artifacts: 300,
    standingModels: 200,
    repositories: 2_000,
    hubBytes: 256 * MIB,
    seedBytes: 512 * MIB,
    streamBytes: 128 * MIB,
    manyArtifacts: 1_000,
    growthNames: [10, 100, 1_000, 3_000],
    growthMib: [64, 256, 1_024],
    growthFiles: [10, 100, 1_000],
    growthArtifacts: [100, 1_000],
    growthPeers: [1, 4, 16],
    growthTorrents: [1, 10, 100]
  },
  /** A smoke test of every row; its results are meaningless. */
  smoke: {
    runs: 1,
    shortRuns: 1,
    largeBytes: 9 * MIB,
    memoryBytes: 17 * MIB,
    memoryFiles: 30,
    smallFiles: 20,
    ggufFiles: 2,
    ggufBytes: 1_000_000,
    verifyBytes: 8 * MIB,
    blobBytes: 3 * MIB,
    loadSeconds: 0.2,
    artifacts: 5,
    standingModels: 3,
    repositories: 20,
    hubBytes: 8 * MIB,
    seedBytes: 64 * MIB,
    streamBytes: 8 * MIB,
    manyArtifacts: 6,
    growthNames: [5, 10],
    growthMib: [2, 4],
    growthFiles: [2, 4],
    growthArtifacts: [2, 4],
    growthPeers: [1, 2],
    growthTorrents: [1, 2]
  }
} as const satisfies Record<string, Profile>

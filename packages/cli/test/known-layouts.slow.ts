// Repositories with the names of files that well-known ones have: one of each five, all of them in known-layouts.faults.ts.
import { knownLayouts } from '@svc/testkit/known-layouts'
import { testFolders } from './folders.ts'

testFolders(knownLayouts().filter((_, n) => n % 5 === 0))

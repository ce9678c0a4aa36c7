// Repositories with the names of files that well-known ones have, and one of odd names.
import { knownLayouts } from '@svc/testkit/known-layouts'
import { testFolders } from './folders.ts'

testFolders(knownLayouts())

//! Record batch v2: views without copying, record walk, builder, position patch, checksum.
#![cfg_attr(not(feature = "std"), no_std)]

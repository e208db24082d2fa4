package addresses

import "net/netip"

// Metadata returns the ranges with the metadata services of clouds, which give
// credentials to any client. All link-local addresses are among them.
func Metadata() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
		netip.MustParsePrefix("168.63.129.16/32"),   // wire server of Azure
		netip.MustParsePrefix("169.254.0.0/16"),     // link-local, with the metadata of most clouds
		netip.MustParsePrefix("192.0.0.0/24"),       // IETF protocol assignments, with the metadata of Oracle Cloud
		netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
		netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
		netip.MustParsePrefix("fe80::/10"),          // link-local
	}
}

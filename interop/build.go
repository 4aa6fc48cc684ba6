package main

import (
	"encoding/hex"
	"net"
	"time"

	"github.com/wmnsk/go-pfcp/ie"
	"github.com/wmnsk/go-pfcp/message"
)

// builtMessage is a message that go-pfcp built, with the result of parsing it again.
type builtMessage struct {
	Octets string `json:"octets"`
	parsedMessage
}

var (
	v4        = net.IPv4(192, 0, 2, 1)
	v6        = net.ParseIP("2001:db8::1")
	startTime = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)
	mac       = net.HardwareAddr{2, 0, 0, 0, 0, 7}
)

// buildMessages builds a message of each type that go-pfcp supports.
func buildMessages() []builtMessage {
	var all []builtMessage
	for _, message := range append(nodeMessages(), sessionMessages()...) {
		data := make([]byte, message.MarshalLen())
		if err := message.MarshalTo(data); err != nil {
			panic(err)
		}
		text := hex.EncodeToString(data)
		all = append(all, builtMessage{Octets: text, parsedMessage: parseMessage(text)})
	}
	return all
}

func nodeMessages() []message.Message {
	id := ie.NewNodeID("", "", "smf.example.org")
	accepted := ie.NewCause(ie.CauseRequestAccepted)
	refused := ie.NewCause(ie.CauseMandatoryIEMissing)
	offending := ie.NewOffendingIE(ie.NodeID)
	stamp := ie.NewRecoveryTimeStamp(startTime)
	csid := ie.NewFQCSID("192.0.2.1", 1, 2, 3)
	peer := ie.NewRemoteGTPUPeer(0x0e, "192.0.2.1", "", 1, "access")
	return []message.Message{
		message.NewHeartbeatRequest(1, stamp, ie.NewSourceIPAddress(v4, v6, 24)),
		message.NewHeartbeatResponse(1, stamp),
		message.NewPFDManagementRequest(2, ie.NewApplicationIDsPFDs(
			ie.NewApplicationID("application"),
			ie.NewPFDContext(ie.NewPFDContents("permit in ip from any to any", "https://example.org", "example.org",
				"custom", "http", []string{"one", "two"}, []string{"three"}, []string{"four", "five"})),
		)),
		message.NewPFDManagementResponse(2, refused, offending),
		message.NewAssociationSetupRequest(3, id, stamp,
			ie.NewUPFunctionFeatures(1, 2, 3, 4), ie.NewCPFunctionFeatures(5),
			ie.NewUserPlaneIPResourceInformation(0x61, 3, "192.0.2.1", "", "internet", 1)),
		message.NewAssociationSetupResponse(3, id, accepted, stamp, ie.NewUPFunctionFeatures(0x10, 0x20)),
		message.NewAssociationUpdateRequest(4, id, ie.NewPFCPAssociationReleaseRequest(1, 0),
			ie.NewGracefulReleasePeriod(20*time.Minute)),
		message.NewAssociationUpdateResponse(4, id, accepted, ie.NewCPFunctionFeatures(3)),
		message.NewAssociationReleaseRequest(5, id),
		message.NewAssociationReleaseResponse(5, id, accepted),
		message.NewVersionNotSupportedResponse(6),
		message.NewNodeReportRequest(7, id, ie.NewNodeReportType(1), ie.NewUserPlanePathFailureReport(peer)),
		message.NewNodeReportResponse(7, id, accepted, offending),
		message.NewSessionSetDeletionRequest(8, id, csid),
		message.NewSessionSetDeletionResponse(8, id, accepted, offending),
	}
}

func sessionMessages() []message.Message {
	id := ie.NewNodeID("192.0.2.1", "", "")
	accepted := ie.NewCause(ie.CauseRequestAccepted)
	fseid := ie.NewFSEID(0x1122334455667788, v4, v6)
	load := ie.NewLoadControlInformation(ie.NewSequenceNumber(9), ie.NewMetric(50))
	volume := ie.NewVolumeMeasurement(0x3f, 1000, 600, 400, 10, 6, 4)
	report := []*ie.IE{
		ie.NewURRID(7), ie.NewURSEQN(2), ie.NewUsageReportTrigger(1, 2, 3), ie.NewStartTime(startTime),
		ie.NewEndTime(startTime.Add(time.Hour)), volume, ie.NewDurationMeasurement(time.Hour),
	}
	return []message.Message{
		message.NewSessionEstablishmentRequest(1, 0, 0, 10, 5, id, fseid, pdr(), far(), urr(), qer(), bar(),
			ie.NewPDNType(ie.PDNTypeIPv4), ie.NewUserPlaneInactivityTimer(time.Minute),
			ie.NewUserID(0x0f, "001010000000001", "353490069873319", "49123456789", "user@example.org"),
			ie.NewAPNDNN("internet.example"), ie.NewSNSSAI(1, 0x010203),
			ie.NewTraceInformation("262", "01", "\x01\x02\x03", []byte{1, 2}, 3, []byte{4, 5}, v4)),
		message.NewSessionEstablishmentResponse(0, 0, 1, 10, 0, id, accepted, fseid,
			ie.NewCreatedPDR(ie.NewPDRID(1), ie.NewFTEID(1, 0x11223344, v4, nil, 0)), load,
			ie.NewCreatedTrafficEndpoint(ie.NewTrafficEndpointID(3), ie.NewFTEID(2, 5, nil, v6, 0))),
		message.NewSessionModificationRequest(0, 0, 2, 11, 0, fseid, pdr(), ie.NewRemovePDR(ie.NewPDRID(4)),
			ie.NewUpdateFAR(ie.NewFARID(1), ie.NewApplyAction(2, 0), ie.NewUpdateForwardingParameters(
				ie.NewDestinationInterface(0), ie.NewOuterHeaderCreation(0x0100, 0x44332211, "192.0.2.1", "", 0, 0, 0))),
			ie.NewQueryURR(ie.NewURRID(7)), ie.NewPFCPSMReqFlags(7)),
		message.NewSessionModificationResponse(0, 0, 3, 11, 0, accepted,
			ie.NewUsageReportWithinSessionModificationResponse(report...)),
		message.NewSessionDeletionRequest(0, 0, 4, 12, 0),
		message.NewSessionDeletionResponse(0, 0, 5, 12, 0, accepted,
			ie.NewUsageReportWithinSessionDeletionResponse(report...)),
		message.NewSessionReportRequest(0, 0, 6, 13, 0, ie.NewReportType(0, 0, 1, 1),
			ie.NewDownlinkDataReport(ie.NewPDRID(1)), ie.NewUsageReportWithinSessionReportRequest(report...)),
		message.NewSessionReportResponse(0, 0, 7, 13, 0, ie.NewCause(ie.CauseRuleCreationModificationFailure),
			ie.NewOffendingIE(ie.CreatePDR), ie.NewPFCPSRRspFlags(1), fseid,
			ie.NewAlternativeSMFIPAddress(v4, v6)),
	}
}

func pdr() *ie.IE {
	return ie.NewCreatePDR(
		ie.NewPDRID(1), ie.NewPrecedence(100),
		ie.NewPDI(
			ie.NewSourceInterface(ie.SrcInterfaceAccess), ie.NewFTEID(3, 0x11223344, v4, v6, 0),
			ie.NewNetworkInstance("internet"), ie.NewUEIPAddress(0x06, "198.51.100.7", "", 0, 0),
			ie.NewSDFFilter("permit out ip from any to assigned", "", "", "", 17),
			ie.NewEthernetPacketFilter(ie.NewMACAddress(mac, mac, nil, nil), ie.NewEthertype(0x0800),
				ie.NewCTAG(7, 1, 0, 0x123)),
			ie.NewApplicationID("application"), ie.NewQFI(9)),
		ie.NewOuterHeaderRemoval(0, 1), ie.NewFARID(1), ie.NewURRID(7), ie.NewQERID(3))
}

func far() *ie.IE {
	return ie.NewCreateFAR(ie.NewFARID(1), ie.NewApplyAction(2, 0), ie.NewForwardingParameters(
		ie.NewDestinationInterface(ie.DstInterfaceCore), ie.NewNetworkInstance("internet"),
		ie.NewRedirectInformation(2, "https://example.org"), ie.NewTransportLevelMarking(0x4fff),
		ie.NewForwardingPolicy("policy"), ie.NewHeaderEnrichment(0, "name", "value"),
		ie.NewOuterHeaderCreation(0x0400, 0, "192.0.2.1", "", 2152, 0, 0)), ie.NewBARID(2))
}

func urr() *ie.IE {
	return ie.NewCreateURR(ie.NewURRID(7), ie.NewMeasurementMethod(0, 1, 1), ie.NewReportingTriggers(7, 3, 0),
		ie.NewMeasurementPeriod(time.Minute), ie.NewVolumeThreshold(7, 300, 200, 100),
		ie.NewTimeThreshold(time.Hour), ie.NewVolumeQuota(1, 1000, 0, 0), ie.NewTimeQuota(2*time.Hour),
		ie.NewQuotaHoldingTime(30*time.Second))
}

func qer() *ie.IE {
	return ie.NewCreateQER(ie.NewQERID(3), ie.NewGateStatus(0, 1), ie.NewMBR(100, 200), ie.NewGBR(10, 20),
		ie.NewPacketRate(3, 1, 50, 2, 60), ie.NewQFI(9))
}

func bar() *ie.IE {
	return ie.NewCreateBAR(ie.NewBARID(2), ie.NewDownlinkDataNotificationDelay(100*time.Millisecond),
		ie.NewSuggestedBufferingPacketsCount(5))
}
